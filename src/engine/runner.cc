#include "engine/runner.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <stdexcept>

#include "base/cores.h"
#include "base/log.h"
#include "engine/head_logits.h"
#include "engine/model_fault.h"
#include "ops/parallel.h"

namespace valora {
namespace {

using scheduler::FailedRequest;
using scheduler::StepItem;
using scheduler::StepOutput;
using scheduler::StepPlan;
using serving::for_each_visual;
using serving::Sequence;
using serving::sequence_of;

// How long the encoding of images holds up a step: for twice the time of a step of decodes, so that
// a stream goes on at a third of its speed, or for so long. With no step to hold up, the engine
// looks for new requests so often.
constexpr Duration kHoldUp = std::chrono::milliseconds(20);
constexpr Duration kUndisturbed = std::chrono::milliseconds(50);

// The place of its choice among those of the step, the lowest first.
double turn_in_step(const Sequence& s) {
  return s.grammar ? grammar::turn_of(*s.owner->masks, s.waited) : 0;
}

// The other ranks wait while the first one runs the tower: it takes their compute threads.
class AllThreads {
 public:
  explicit AllThreads(int ranks) : own_(at::get_num_threads()) {
    if (ranks > 1) at::set_num_threads(ranks * own_);
  }
  ~AllThreads() {
    if (at::get_num_threads() != own_) at::set_num_threads(own_);
  }
  AllThreads(const AllThreads&) = delete;
  AllThreads& operator=(const AllThreads&) = delete;

 private:
  const int own_;
};

// What fails for one output, as an allocation may, ends its request alone.
template <typename Body>
void for_output(StepOutput& output, Body&& body) {
  try {
    body();
  } catch (const std::exception& e) {
    output.error = model_fault("the answer could not be made", e);
  }
}

// The tokens of an item that are to be chosen.
struct Choice {
  const StepItem* item;
  StepOutput* output;
  ChoiceRows rows;
};

bool has_grammar(const Choice& choice) { return sequence_of(*choice.item).grammar.has_value(); }

std::vector<Choice> choices_of(const StepPlan& plan, std::vector<StepOutput>& outputs) {
  std::vector<Choice> choices;
  int64_t next_row = 0;
  auto output = outputs.begin();
  for (const StepItem& item : plan.items) {
    if (!item.yields) continue;
    StepOutput& its = *output++;
    const serving::ActiveRequest& owner = *sequence_of(item).owner;
    if (!owner.generates()) continue;
    ChoiceRows rows;
    rows.first = next_row;
    rows.count = 1 + static_cast<int64_t>(item.drafts.size());
    rows.vocab = static_cast<int32_t>(owner.language->vocab);
    next_row += rows.count;
    choices.push_back({&item, &its, std::move(rows)});
  }
  return choices;
}

// What is asked of a row after a draft depends on the choice before it.
void ask(Choice& choice) {
  for_output(*choice.output, [&] {
    if (choice.item->drafts.empty())
      choice.rows.query = serving::query_next(sequence_of(*choice.item));
  });
}

void choose(Choice& choice, grammar::StepMasks& masks, bool again) {
  ChoiceRows& rows = choice.rows;
  const auto vocab = static_cast<size_t>(rows.vocab);
  std::optional<serving::PartialRow> partial;
  std::optional<serving::WholeRow> whole;
  const bool is_whole = rows.copied.defined() && rows.copied.dim() == 2;
  if (!is_whole) partial.emplace(*rows.query, rows.found);
  if (partial && rows.copied.defined())
    partial->tell(rows.part, {rows.copied.data_ptr<float>(),
                                 static_cast<size_t>(rows.copied.numel())});
  const auto row = [&](size_t i) -> serving::LogitRow& {
    if (partial) return *partial;
    return whole.emplace(
        std::span(rows.copied.data_ptr<float>() + static_cast<int64_t>(i) * rows.copied.size(1),
                  vocab));
  };
  rows.missing = serving::sample_tokens(*choice.item, row, masks, *choice.output, again);
}

// The engine's log says what the exception means, not torch's stack.
template <typename Body>
auto without_backtrace(Body&& body) {
  try {
    return body();
  } catch (const c10::Error& e) {
    throw std::runtime_error(e.what_without_backtrace());
  }
}

}  // namespace

Runner::Runner(const models::Model& model, std::unique_ptr<RankGroup> ranks, at::ScalarType dtype,
               at::Device device, std::unique_ptr<ops::LaunchedWork> launched,
               const Options& options, const Clock& clock)
    : model_(model),
      options_(options),
      clock_(clock),
      launched_(std::move(launched)),
      rows_(device, *launched_),
      visuals_(model, dtype, options.visual_cache_bytes, clock, models::piece_size(device),
               *launched_),
      builder_(model.spec().axes),
      ranks_(std::move(ranks)),
      masks_(!device.is_cpu() || ranks_->count() * at::get_num_threads() < usable_cores()
                 ? std::make_unique<grammar::MaskFiller>()
                 : nullptr) {}

bool Runner::ready(const scheduler::Request& request, int begin, int end) const {
  const auto& s = static_cast<const Sequence&>(request);
  for (size_t i = 0; i < s.prompt->visual.size(); ++i)
    if (s.prompt->visual[i].overlaps(begin, end) && !visuals_.has(s.prompt->visual_keys[i]))
      return false;
  return true;
}

Duration Runner::time_for_visuals(const StepPlan& plan) const {
  return plan.items.empty() ? kUndisturbed : std::max(2 * decode_time_, kHoldUp);
}

std::vector<FailedRequest> Runner::prepare(const StepPlan& plan) {
  return without_backtrace([&] { return prepare_visuals(plan); });
}

void Runner::forget_merged() {
  builder_.forget_merged();
  without_backtrace([&] { ranks_->forget_merged(); });
}

std::vector<FailedRequest> Runner::prepare_visuals(const StepPlan& plan) {
  std::vector<WantedVisual> wanted;
  const auto request = [&](const StepItem& item) {
    for_each_visual(item, [&](const models::VisualSpan& span, const Digest& key, int, int) {
      if (!wanted.empty() && wanted.back().key == key) return;  // another frame of a video
      wanted.push_back({key, span.input, {}});
      std::ranges::copy_if(sequence_of(item).owner->adapters,
                           std::back_inserter(wanted.back().adapters), serving::changes_visuals);
    });
  };
  std::ranges::for_each(plan.items, request);
  std::ranges::for_each(plan.preparing, request);
  visuals_.request(wanted);
  {
    const AllThreads threads(wanted.empty() ? 1 : ranks_->count());
    visuals_.run(time_for_visuals(plan));
  }

  std::vector<FailedRequest> failed;
  const auto check = [&](const StepItem& item) {
    std::optional<Error> error;
    for_each_visual(item, [&](const models::VisualSpan&, const Digest& key, int, int) {
      if (const auto* result = visuals_.find(key); result && !result->ok()) error = result->error();
    });
    if (error) failed.push_back({item.request, *error});
  };
  std::ranges::for_each(plan.items, check);
  std::ranges::for_each(plan.preparing, check);
  return failed;
}

// logits: of the scored rows of the items, in plan order.
void Runner::sample(const StepPlan& plan, std::vector<StepOutput>& outputs,
                    const at::Tensor& logits) {
  std::vector<Choice> choices = choices_of(plan, outputs);
  std::ranges::stable_sort(
      choices, {}, [](const Choice& choice) { return turn_in_step(sequence_of(*choice.item)); });
  if (masks_) {
    if (std::ranges::any_of(choices, has_grammar)) launched_->wait();  // they are filled meanwhile
    masks_->stop();
  }
  if (rows_.answers())
    for (Choice& choice : choices) ask(choice);
  grammar::StepMasks masks(options_.mask_seconds);
  std::vector<Choice*> open;
  for (Choice& choice : choices) open.push_back(&choice);
  for (bool again = false; !open.empty(); again = true) {
    std::vector<ChoiceRows*> wanted;
    for (Choice* choice : open) wanted.push_back(&choice->rows);
    rows_.fetch(logits, wanted);
    std::atomic<size_t> next = 0;  // across the threads, so that the order holds
    ops::torch_parallel()(0, static_cast<int64_t>(open.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        Choice& choice = *open[next++];
        choice.rows.missing = {};
        for_output(*choice.output, [&] { choose(choice, masks, again); });
      }
    });
    std::erase_if(open, [](const Choice* choice) { return !choice->rows.missing; });
  }
}

Result<std::vector<StepOutput>> Runner::run(const StepPlan& plan) {
  try {
    const TimePoint begin = clock_.now();
    auto outputs = forward(plan);
    if (plan.shape.prefill_tokens == 0) decode_time_ = clock_.now() - begin;
    return outputs;
  } catch (const LostWeights&) {
    if (masks_) masks_->stop();
    throw;
  } catch (const LostRank&) {
    if (masks_) masks_->stop();
    throw;
  } catch (const std::exception& e) {
    spdlog::error("a step of {} tokens failed: {}", plan.total_tokens, reason_of(e));
    builder_.forget_merged();
    if (masks_) masks_->stop();
    check_device(*launched_, e);
    return model_fault("the model failed to run a step", e);
  }
}

// While the model runs, if it leaves a core free. Else one thread would fill masks at the expense
// of the model's threads, which wait for each other, and sampling does it on all of them.
void Runner::fill_masks(const StepPlan& plan) {
  if (!masks_) return;
  std::vector<Sequence*> sequences;
  for (const StepItem& item : plan.items)
    if (item.yields && sequence_of(item).grammar) sequences.push_back(&sequence_of(item));
  std::ranges::stable_sort(sequences, {}, [](const Sequence* s) { return turn_in_step(*s); });
  std::vector<grammar::GrammarMatcher*> matchers;
  for (Sequence* s : sequences) matchers.push_back(&*s->grammar);
  masks_->begin(std::move(matchers));
}

std::vector<StepOutput> Runner::forward(const StepPlan& plan) {
  fill_masks(plan);
  const serving::BatchMessage message = builder_.build(plan);
  const at::Tensor hidden = ranks_->forward(message, visuals_);
  std::vector<StepOutput> outputs;
  for (size_t i = 0; i < plan.items.size(); ++i) {
    const StepItem& item = plan.items[i];
    const kernels::QuerySpan& span = message.tokens.spans[i];
    const serving::ActiveRequest& owner = *sequence_of(item).owner;
    if (owner.prompt_logprobs) score_prompt(item, hidden.narrow(0, span.begin, span.queries));
    if (!item.yields) continue;
    outputs.push_back({item.request, {}, {}, {}});
    if (!owner.generates()) read_state(outputs.back(), hidden[span.begin + span.queries - 1]);
  }
  if (!message.sampled.rows.empty()) {
    sample(plan, outputs, ranks_->logits(hidden, message.sampled));
  } else {
    launched_->wait();  // the step ends here: for its time, and for the next one's tables
  }
  return outputs;
}

// What a task head or an embedding makes of the state of the last prompt token.
void Runner::read_state(StepOutput& output, const at::Tensor& state) {
  for_output(output, [&] {
    const serving::LoadedHead* head = sequence_of(output).owner->head;
    auto values = head ? label_logits(*head, state) : embedding_of(state);
    if (values.ok())
      output.values = std::move(values).value();
    else
      output.error = values.error();
  });
}

}  // namespace valora
