// Trains one adapter over the samples of one or more tasks (VaLoRA §4.2.1, "standard supervised
// learning").
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "generator/train/adapter_parameters.h"
#include "generator/train/checkpoint.h"
#include "generator/train/options.h"
#include "generator/train/pass.h"
#include "generator/train/trainable_model.h"

namespace valora::generator {

// One task's samples, and how large a share of each step they are.
struct TrainingSource {
  std::shared_ptr<const std::vector<Example>> examples;
  double share = 1;
};

struct TrainingProgress {
  int64_t step = 0, steps = 0;  // done, of all
  double loss = 0;              // of the last step
  double learning_rate = 0, gradient_norm = 0;
  double samples_per_second = 0;
};

struct TrainingCallbacks {
  std::function<void(const TrainingProgress&)> progress;
  // What the adapter is worth as it stands, more being better; asked every `evaluate_every` steps
  // and at the end.
  std::function<Result<double>(const AdapterParameters&)> evaluate;
};

struct TrainingResult {
  int64_t steps = 0;  // done; fewer than asked where no evaluation got better
  double first_loss = 0, last_loss = 0;
  std::optional<double> best_score;
  double seconds = 0, samples_per_second = 0;  // of this run alone, without evaluations
};

class Trainer {
 public:
  // checkpoint: a file; empty: none is written or read.
  Trainer(const TrainableModel& model, TrainingOptions options, std::string checkpoint);

  // The parameters end as the best that an evaluation saw, or as the last step left them. A step
  // whose loss is no number ends the training with an error that names the step, and leaves the
  // parameters as they were before it.
  Result<TrainingResult> train(AdapterParameters& parameters,
                               const std::vector<TrainingSource>& sources,
                               const TrainingCallbacks& callbacks);

 private:
  struct Step {
    double loss = 0, gradient_norm = 0;
  };
  Result<Step> step(AdapterParameters& parameters, std::vector<const Example*> examples,
                    int64_t index);
  std::string identity(const AdapterParameters& parameters,
                       const std::vector<TrainingSource>& sources) const;
  Status evaluate(AdapterParameters& parameters, const TrainingCallbacks& callbacks,
                  TrainingState& state) const;

  const TrainableModel& model_;
  TrainingOptions options_;
  std::string checkpoint_;
  VisualSource visuals_;
  TrainingPass pass_;
  RealClock clock_;
};

}  // namespace valora::generator
