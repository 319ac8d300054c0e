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

namespace valora::serving {

class EngineCore;
// Commands of the engine thread. Lists hand over without taking memory.
using EngineCommands = std::list<std::function<void(EngineCore&)>>;

struct ActiveRequest {
  RequestHandle handle = 0;
  GenerateRequest request;
  std::shared_ptr<ResponseSink> sink;
  std::vector<AppliedAdapter> adapters;
  const Language* language = nullptr;  // of the adapters (Frontend::language_of)
  const LoadedHead* head = nullptr;    // the task head that answers; null: the language model
  AnswerForm form;                     // of the first adapter; for kLabels and kBoxes
  // Else it answers from the state of the last prompt token.
  bool generates() const { return head == nullptr && request.task != Task::kEmbed; }
  SamplingSettings sampling;
  StopStrings stop_strings;
  TimePoint arrival{};
  std::string client;  // who takes turns with others
  // Made when it is accepted, given to the engine thread once each: its admission, its
  // cancellation.
  EngineCommands admission, cancellation;
  std::atomic<bool> cancelled = false;
  // What workers prepare, each by its own; the engine thread reads it once all is there.
  std::atomic<int> preparations = 1;
  std::optional<Result<PreparedPrompt>> prompt;
  std::optional<Result<grammar::GrammarMatcher>> grammar;  // at the start; absent: no constraint
  std::stop_source stop;                                   // ends the preparation of its prompt
  std::optional<grammar::MaskAccount> masks;               // of all its sequences; with a grammar

  // Used by the engine thread only.
  bool started = false;
  bool ended = false;
  int open_sequences = 0;
  std::unique_ptr<PromptLogprobs> prompt_logprobs;  // null: not asked for
  Usage usage;
  int preemptions = 0;
  TimePoint first_scheduled{}, first_token{};
  Duration adapter_wait{}, kv_wait{};  // before first_scheduled
  std::vector<std::shared_ptr<struct Sequence>> sequences;
};

struct Sequence final : scheduler::Request {
  Sequence(std::shared_ptr<ActiveRequest> owner_, int index_,
           std::shared_ptr<const PreparedPrompt> prompt_,
           const std::shared_ptr<const text::Tokenizer>& tokenizer, int max_tokens_);

  std::shared_ptr<ActiveRequest> owner;
  int index = 0;  // 0 … n - 1
  std::shared_ptr<const PreparedPrompt> prompt;
  Sampler sampler;
  std::optional<grammar::GrammarMatcher> grammar;  // after the tokens generated so far
  double charged = 0;  // of its grammar's CPU time, to the request's account
  int waited = 0;      // for so many steps, for a choice under its grammar
  OutputText output;
  std::unique_ptr<AnswerShape> shape;  // what becomes of the text; null: it is the answer
  int max_tokens = 0;
  // End-of-sequence and stop tokens; forbidden before min_tokens.
  std::vector<int32_t> ending_tokens;
};

// The next tokens of a sequence, into `output`: one from the logits of the item's last known token,
// and one more after each draft that is right. logits(i): of the i-th of its scored rows. Of an
// item without drafts the row may be one in part. If it lacks something for the choice, that is
// returned, and nothing has been chosen; the next call for this step comes with `again`. What
// sample_next() says of masks and errors holds.
Missing sample_tokens(const scheduler::StepItem& item,
                      const std::function<LogitRow&(size_t)>& logits, grammar::StepMasks& masks,
                      scheduler::StepOutput& output, bool again = false);

// The next token of a sequence, after `ahead` ones that this step has chosen: under its grammar if
// it has one, which then follows it, and without ending tokens before min_tokens, unless the
// grammar leaves nothing else. logits: changed. Nothing if the row lacks something for the choice,
// or if the masks of this step leave no time; not asked of one that began before (again).
// kInvalidArgument: the request's masks have taken more time than they may.
std::optional<Result<SampledToken>> sample_next(Sequence& sequence, LogitRow& logits,
                                                grammar::StepMasks& masks, int ahead = 0,
                                                bool again = false);

// What sample_next() will ask of a row that a device keeps (Sampler::query()). Nothing also if the
// mask of its grammar is not known yet.
std::optional<kernels::CandidateQuery> query_next(const Sequence& sequence);

}  // namespace valora::serving
