#include "scheduler/step_loop.h"

#include <memory>

namespace valora::scheduler {

StepReport StepLoop::step() {
  const TimePoint begin = clock_.now();
  StepPlan plan = scheduler_.plan([this](const Request& request, int begin, int end) {
    return executor_.ready(request, begin, end);
  });
  for (const FailedRequest& one : plan.failed) fail(*one.request, one.error);
  if (plan.items.empty() && plan.preparing.empty())
    return {.waits_for_copies = plan.waits_for_copies};
  // A request that finishes within the step must live until the step is complete.
  std::vector<std::shared_ptr<Request>> alive;
  alive.reserve(plan.items.size() + plan.preparing.size());
  for (const StepItem& item : plan.items) alive.push_back(item.request->shared_from_this());
  for (const StepItem& item : plan.preparing) alive.push_back(item.request->shared_from_this());
  const size_t planned = plan.items.size();
  listener_.on_planned(plan);

  const TimePoint prepare_begin = clock_.now();
  drop_failed(plan, executor_.prepare(plan));
  const TimePoint run_begin = clock_.now();
  if (planned == 0) return {.waits_for_copies = plan.waits_for_copies};
  auto outputs = plan.items.empty() ? std::vector<StepOutput>{} : executor_.run(plan);
  const TimePoint run_end = clock_.now();
  const bool whole = plan.items.size() == planned;
  if (outputs.ok() && whole) scheduler_.note_step(plan, run_end - run_begin);

  complete(plan, outputs);
  const TimePoint end = clock_.now();
  return {.tokens = plan.total_tokens,
          .sequences = static_cast<int>(plan.items.size()),
          .seconds = seconds(end - begin),
          .overhead_seconds = seconds((end - begin) - (run_end - prepare_begin)),
          .run_seconds = outputs.ok() && whole ? seconds(run_end - run_begin) : 0,
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

// The listener may finish several requests at once, so this one may be finished already.
void StepLoop::fail(Request& request, const Error& error) {
  if (request.state != RequestState::kFinished) listener_.on_failed(request, error);
}

void StepLoop::complete(const StepPlan& plan, Result<std::vector<StepOutput>>& outputs) {
  if (!outputs.ok()) {
    for (const StepItem& item : plan.items) fail(*item.request, outputs.error());
    return;
  }
  scheduler_.complete(plan);
  for (StepOutput& output : *outputs) {
    Request& request = *output.request;
    if (request.state == RequestState::kFinished) continue;  // an earlier output finished it
    if (output.error)
      fail(request, *output.error);
    else
      listener_.on_output(output);
  }
}

}  // namespace valora::scheduler
