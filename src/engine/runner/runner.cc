#include "engine/runner/runner.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "base/log/log.h"
#include "base/machine/cores.h"
#include "engine/adapters/head_logits.h"
#include "engine/runner/model_fault.h"
#include "ops/device/parallel.h"

namespace valora {
namespace {

using scheduler::FailedRequest;
using scheduler::StepItem;
using scheduler::StepOutput;
using scheduler::StepPlan;
using serving::for_each_visual;
using serving::Sequence;
using serving::sequence_of;

// How long encoding images may delay a step: twice the time of a decode step, so that a stream
// continues at a third of its speed, but at least kHoldUp. If there is no step to delay, the engine
// checks for new requests every kUndisturbed.
constexpr Duration kHoldUp = std::chrono::milliseconds(20);
constexpr Duration kUndisturbed = std::chrono::milliseconds(50);

// While the first rank runs the tower, the other ranks are idle, so it takes their compute threads.
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

// Drops torch's backtrace from the message: the engine's log explains the exception.
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
  const auto watched = ranks_->watched();
  without_backtrace([&] { ranks_->forget_merged(); });
}

std::vector<FailedRequest> Runner::prepare_visuals(const StepPlan& plan) {
  std::vector<WantedVisual> wanted;
  const auto request = [&](const StepItem& item) {
    for_each_visual(item, [&](const models::VisualSpan& span, const Digest& key, int, int) {
      if (!wanted.empty() && wanted.back().key == key) return;  // another span of one input
      wanted.push_back({key, span.encoded(), {}});
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

Result<std::vector<StepOutput>> Runner::run(const StepPlan& plan) {
  try {
    const TimePoint begin = clock_.now();
    auto outputs = forward(plan);
    if (plan.shape.prefill_tokens == 0) decode_time_ = clock_.now() - begin;
    return outputs;
  } catch (const WeightsLostError&) {
    if (masks_) masks_->stop();
    throw;
  } catch (const RankLostError&) {
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

std::vector<StepOutput> Runner::forward(const StepPlan& plan) {
  fill_masks(plan);
  const auto watched = ranks_->watched();
  const serving::BatchMessage message = builder_.build(plan);
  const at::Tensor hidden = ranks_->forward(message, visuals_);
  std::vector<StepOutput> outputs;
  for (size_t i = 0; i < plan.items.size(); ++i) {
    const StepItem& item = plan.items[i];
    const kernels::QuerySpan& span = message.tokens.spans[i];
    const serving::ActiveRequest& owner = *sequence_of(item).owner;
    if (owner.prompt_logprobs) score_prompt(item, span.begin);
    if (owner.state_sum) add_states(item, hidden.slice(0, span.begin, span.begin + span.queries));
    if (!item.yields) continue;
    outputs.push_back({item.request, {}, {}, {}});
    if (!owner.generates()) read_state(outputs.back(), hidden[span.begin + span.queries - 1]);
  }
  if (!message.sampled.rows.empty()) {
    sample(plan, outputs, ranks_->logits(0, hidden.size(0), message.sampled));
  } else {
    launched_->wait();  // the step ends here, for its timing and for the next step's tables
  }
  ranks_->check();
  return outputs;
}

// states: of the item's tokens.
void Runner::add_states(const StepItem& item, const at::Tensor& states) {
  const serving::Sequence& s = sequence_of(item);
  serving::StateSum& total = *s.owner->state_sum;
  const int again = std::max(total.counted - s.computed_tokens, 0);
  if (again >= item.tokens) return;
  const at::Tensor sum = states.slice(0, again).to(at::kFloat).sum(0).cpu();
  total.sum.resize(static_cast<size_t>(sum.numel()));
  const float* values = sum.const_data_ptr<float>();
  for (size_t i = 0; i < total.sum.size(); ++i) total.sum[i] += values[i];
  total.counted = s.computed_tokens + item.tokens;
}

// Computes the output of a task head or an embedding, from the last prompt token's state or the
// mean of all.
void Runner::read_state(StepOutput& output, const at::Tensor& state) {
  for_output(output, [&] {
    const serving::ActiveRequest& owner = *sequence_of(output).owner;
    const serving::LoadedHead* head = owner.head;
    auto values = head ? label_logits(*head, state)
                  : owner.state_sum
                      ? embedding_of(at::tensor(owner.state_sum->sum) / owner.state_sum->counted)
                      : embedding_of(state);
    if (values.ok())
      output.values = std::move(values).value();
    else
      output.error = values.error();
  });
}

}  // namespace valora
