#include "scheduler/step_loop.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "base/fault.h"
#include "memory/pool.h"

namespace valora::scheduler {
namespace {

bool any_waits(const Result<std::vector<StepOutput>>& outputs) {
  return outputs.ok() && std::ranges::any_of(*outputs, &StepOutput::waits);
}

// Wrong drafts do not count as computed, nor does the last token of a request without a result.
void note_rejected(StepPlan& plan, const std::vector<StepOutput>& outputs) {
  auto output = outputs.begin();
  for (StepItem& item : plan.items) {
    if (!item.yields) continue;
    const auto drafts = static_cast<int>(item.drafts.size()),
               right = std::max(0, static_cast<int>(output->tokens.size()) - 1);
    item.rejected = output->waits ? 1 + drafts : drafts - right;
    ++output;
  }
}

}  // namespace

// A plan, and when the parts of its step began.
struct StepLoop::Begun {
  StepPlan plan;
  size_t planned = 0;  // number of items before some failed
  // A request that finishes during the step must live until the step is complete.
  std::vector<std::shared_ptr<Request>> alive;
  TimePoint prepare_begin{};
};

void StepLoop::begin(Begun& step) {
  StepPlan& plan = step.plan;
  plan = scheduler_.plan([this](const Request& request, int begin, int end) {
    return executor_.ready(request, begin, end);
  });
  step.alive.reserve(plan.failed.size() + plan.items.size() + plan.preparing.size());
  for (const FailedRequest& one : plan.failed)
    step.alive.push_back(one.request->shared_from_this());
  for (const StepItem& item : plan.items) step.alive.push_back(item.request->shared_from_this());
  for (const StepItem& item : plan.preparing)
    step.alive.push_back(item.request->shared_from_this());
  for (const FailedRequest& one : plan.failed) fail(*one.request, one.error);
  step.planned = plan.items.size();
  if (plan.items.empty() && plan.preparing.empty()) return;
  listener_.on_planned(plan);
  step.prepare_begin = clock_.now();
  drop_failed(plan, executor_.prepare(plan));
}

void StepLoop::give_up() {
  Request* request = scheduler_.culprit();
  if (request == nullptr && std::exchange(given_up_, true)) request = scheduler_.last();
  if (request == nullptr) return;
  given_up_ = false;
  const auto alive = request->shared_from_this();
  fail(*request, out_of_memory());
}

Progress StepLoop::progress() const {
  const memory::PoolStats memory = scheduler_.pool().stats();
  return {done_, scheduler_.stats().grants,
          memory.loads.moves + memory.reads.moves + memory.writes.moves};
}

Result<std::vector<StepOutput>> StepLoop::run(const StepPlan& plan) {
  if (plan.items.empty()) return std::vector<StepOutput>{};
  try {
    return executor_.run(plan);
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

StepReport StepLoop::step() {
  const TimePoint begin = clock_.now();
  Begun step;
  try {
    this->begin(step);
  } catch (const std::bad_alloc&) {
    give_up();
    return {};
  }
  given_up_ = false;
  StepPlan& plan = step.plan;
  if (step.planned == 0) return {.waits_for_copies = plan.waits_for_copies};
  const TimePoint run_begin = clock_.now();
  auto outputs = run(plan);
  const TimePoint run_end = clock_.now();
  const bool whole = outputs.ok() && plan.items.size() == step.planned;
  const Duration preparing = run_begin - step.prepare_begin;
  if (whole) scheduler_.charge(plan, run_end - begin - preparing);
  const bool usual = whole && !any_waits(outputs);  // otherwise not representative

  complete(plan, outputs);
  const TimePoint end = clock_.now();
  const Duration cost = end - begin - preparing;
  if (usual) scheduler_.note_step(plan, cost);
  return {.tokens = plan.total_tokens,
          .sequences = static_cast<int>(plan.items.size()),
          .seconds = seconds(end - begin),
          .overhead_seconds = seconds((end - begin) - (run_end - step.prepare_begin)),
          .cost_seconds = usual ? seconds(cost) : 0,
          .shape = plan.shape};
}

void StepLoop::drop_failed(StepPlan& plan, const std::vector<FailedRequest>& failed) {
  for (const FailedRequest& one : failed) fail(*one.request, one.error);
  std::erase_if(plan.items, [&](const StepItem& item) {
    if (item.request->state != RequestState::kFinished) return false;
    plan.total_tokens -= item.tokens;
    return true;
  });
}

// The listener may finish several requests at once, including this one.
void StepLoop::fail(Request& request, const Error& error) {
  ++done_;
  if (request.state != RequestState::kFinished) listener_.on_failed(request, error);
}

void StepLoop::complete(StepPlan& plan, Result<std::vector<StepOutput>>& outputs) {
  if (!plan.items.empty()) ++done_;
  if (!outputs.ok()) {
    for (const StepItem& item : plan.items) fail(*item.request, outputs.error());
    return;
  }
  note_rejected(plan, *outputs);
  scheduler_.complete(plan);
  for (StepOutput& output : *outputs) {
    Request& request = *output.request;
    if (output.waits || request.state == RequestState::kFinished) continue;  // maybe by another
    if (output.error)
      fail(request, *output.error);
    else
      listener_.on_output(output);
  }
}

}  // namespace valora::scheduler
