// A client's request inside the engine, and its n sequences.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "api/answer.h"
#include "api/request.h"
#include "grammar/mask_budget.h"
#include "scheduler/request.h"
#include "scheduler/step_executor.h"
#include "serving/adapters/loaded_adapter.h"
#include "serving/output/answer_shape.h"
#include "serving/output/output_text.h"
#include "serving/prompts/frontend.h"
#include "serving/sampling/answer_grammars.h"
#include "serving/sampling/prompt_logprobs.h"
#include "serving/sampling/sampler.h"
#include "serving/sampling/thought_progress.h"

namespace valora::serving {

class EngineCore;
// Commands for the engine thread. Lists can be spliced without allocating.
using EngineCommands = std::list<std::function<void(EngineCore&)>>;

// The sum of a prompt's states, collected while the prompt is computed. Tokens that are computed
// again, after a preemption, count once.
struct StateSum {
  int counted = 0;  // tokens
  std::vector<float> sum;
};

struct ActiveRequest : std::enable_shared_from_this<ActiveRequest> {
  RequestHandle handle = 0;
  GenerateRequest request;
  std::shared_ptr<ResponseSink> sink;
  std::vector<AppliedAdapter> adapters;
  const Language* language = nullptr;  // the adapters' (Frontend::language_of)
  const LoadedHead* head = nullptr;    // the task head that answers; null: the language model
  AnswerForm form;                     // the first adapter's; for kLabels and kBoxes
  std::optional<BoxNotation> boxes;    // that of `form`, else the family's
  // Its text has a form that a grammar enforces.
  bool constrained() const;
  // If false, it answers from the state of the last prompt token.
  bool generates() const { return head == nullptr && request.task != Task::kEmbed; }
  SamplingSettings sampling;
  StopStrings stop_strings;
  TimePoint arrival{};
  std::string client;  // clients take turns
  // Created on acceptance, so that passing them to the engine thread does not allocate; each is
  // passed once.
  EngineCommands admission, cancellation;
  std::atomic<bool> cancelled = false;
  // Prepared by workers, one item each; the engine thread reads them once all are ready.
  std::atomic<int> preparations = 1;
  std::optional<Result<PreparedPrompt>> prompt;
  std::optional<Result<grammar::GrammarMatcher>> grammar;  // initial state; absent: no constraint
  std::stop_source stop;                                   // stops the preparation of its prompt
  // Shared by all its sequences, and by its group; null: no grammar.
  std::shared_ptr<grammar::MaskAccount> masks;

  // Used by the engine thread only.
  bool started = false;
  bool ended = false;
  int open_sequences = 0;
  std::unique_ptr<PromptLogprobs> prompt_logprobs;  // null: not requested
  std::unique_ptr<StateSum> state_sum;              // null: it answers with one token's state
  Usage usage;
  int preemptions = 0;
  TimePoint first_scheduled{}, first_token{};
  Duration adapter_wait{}, kv_wait{};  // up to first_scheduled
  std::vector<std::shared_ptr<struct Sequence>> sequences;
};

struct Sequence final : scheduler::Request {
  Sequence(std::shared_ptr<ActiveRequest> owner_, int index_,
           std::shared_ptr<const PreparedPrompt> prompt_,
           const std::shared_ptr<const text::Tokenizer>& tokenizer, int max_tokens_);
  ~Sequence() override;

  std::shared_ptr<ActiveRequest> owner;
  int index = 0;  // 0 … n - 1
  std::shared_ptr<const PreparedPrompt> prompt;
  Sampler sampler;
  std::optional<grammar::GrammarMatcher> grammar;  // state after the tokens generated so far
  double charged = 0;  // CPU seconds of its grammar already charged to the request's account
  int64_t held = 0;    // bytes of its grammar counted there
  int waited = 0;      // consecutive steps spent waiting for a mask
  // After the tokens chosen so far; absent: the answer has no thought, or nothing depends on it.
  std::optional<ThoughtProgress> thought;
  OutputText output;
  double unshaped_logprob = 0;         // of tokens whose text is not written yet
  std::unique_ptr<AnswerShape> shape;  // converts the text to JSON; null: the text is the answer
  int max_tokens = 0;
  // End-of-sequence and stop tokens; not allowed before min_tokens.
  std::vector<int32_t> ending_tokens;

  // Whether this token ends the sequence if it comes next in its output. Within a thought that is
  // given apart, stop tokens do not.
  bool ends_with(int32_t token) const;
};

// Chooses the next tokens of a sequence and adds them to `output`: one from the logits of the
// item's last known token, and one more after each correct draft. logits(i): the item's i-th scored
// row; without drafts it may be a partial row. If a row lacks data for a choice, nothing is chosen
// and the missing data is returned; the next call for this step must set `again`. See sample_next()
// for masks and errors.
Missing sample_tokens(const scheduler::StepItem& item,
                      const std::function<LogitRow&(size_t)>& logits, grammar::StepMasks& masks,
                      scheduler::StepOutput& output, bool again = false);

// Chooses the next token of a sequence, after `ahead` tokens that this step has already chosen.
// Obeys its grammar, if any, and advances it; avoids ending tokens before min_tokens, unless the
// grammar allows nothing else. A thought precedes what the grammar describes: it can only be closed
// then, not end the answer, and is closed when its budget is spent. logits: modified. Returns
// nullopt if the row lacks data for the choice, or if the step has no time left for masks (not
// checked if `again`). kInvalidArgument: the request's masks have exceeded their time limit.
std::optional<Result<SampledToken>> sample_next(Sequence& sequence, LogitRow& logits,
                                                grammar::StepMasks& masks, int ahead = 0,
                                                bool again = false);

// The query that sample_next() needs for a row kept on a device (Sampler::query()). nullopt also if
// the grammar's mask is not computed yet.
std::optional<kernels::CandidateQuery> query_next(const Sequence& sequence);

}  // namespace valora::serving
