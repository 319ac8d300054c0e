// Measures whether adapters change a model's answers, for `valora inspect --prove`.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/options.h"
#include "base/result.h"
#include "engine/inspect/inspect.h"
#include "generator/engine_requests.h"
#include "serving/local_engine.h"

namespace valora::cli {

// One prompt, answered with and without an adapter.
struct ProvedPrompt {
  std::string name;                    // "a text", "a picture"
  std::vector<float> without, with;    // log probabilities of the prompt's tokens but the first
  std::string answer, adapted_answer;  // at temperature 0

  double mean_difference() const;  // of the log probabilities' magnitudes
  double largest_difference() const;
};

struct AdapterProof {
  std::vector<PartNorms> norms;
  std::vector<ProvedPrompt> prompts;

  // Text answers differ from the base model's. Rounding alone differs by less.
  bool changes_answers() const;
};

// Asks the base model and the adapter the same prompts, one after the other, so that all run in
// steps of the same shape. The base model is asked once for all adapters of the same prompts.
class AdapterProver {
 public:
  // Starts an engine. Errors: as start_engine().
  static Result<std::unique_ptr<AdapterProver>> start(const EngineOptions& options);
  ~AdapterProver();

  // The report's adapter can be served with this model. Errors name what failed.
  Result<AdapterProof> prove(const AdapterReport& report);

 private:
  explicit AdapterProver(std::unique_ptr<serving::LocalEngine> engine)
      : engine_(std::move(engine)) {}

  using Answers = std::vector<generator::EngineAnswer>;
  // invocation: at the end of each question.
  Result<const Answers*> without_adapter(const std::string& invocation);

  std::unique_ptr<serving::LocalEngine> engine_;
  std::map<std::string, Answers> without_;  // the base model's, by invocation
};

}  // namespace valora::cli
