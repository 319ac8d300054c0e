#include "sim/step_cost.h"

#include <set>

namespace valora::sim {

using scheduler::AdapterId;
using scheduler::kBaseModel;
using scheduler::Mode;
using scheduler::StepItem;

namespace {

// One segment per adapter that is not merged. In mixture mode one more subtracts the merged adapter
// from the tokens that do not use it.
int count_segments(const scheduler::StepPlan& plan) {
  if (plan.mode == Mode::kMerged) return 0;
  std::set<AdapterId> apart;
  bool others = false;
  for (const StepItem& item : plan.items) {
    const bool merged = plan.mode == Mode::kMixture && item.request->adapter == plan.merged;
    others |= !merged;
    if (!merged && item.request->adapter != kBaseModel) apart.insert(item.request->adapter);
  }
  const bool take_off = plan.mode == Mode::kMixture && others;
  return static_cast<int>(apart.size()) + (take_off ? 1 : 0);
}

}  // namespace

StepShape shape_of(const scheduler::StepPlan& plan, AdapterId merged_before) {
  StepShape shape;
  shape.mode = plan.mode;
  shape.switches = plan.merged != merged_before;
  shape.segments = count_segments(plan);
  for (const StepItem& item : plan.items) {
    const scheduler::Request& request = *item.request;
    const bool decode = item.tokens == 1 && request.computed_tokens >= request.prompt_tokens;
    (decode ? shape.decode_tokens : shape.prefill_tokens) += item.tokens;
    // Token i attends to i + 1 keys: the i tokens before it and itself.
    const int64_t first = request.computed_tokens + 1, last = request.computed_tokens + item.tokens;
    shape.context_tokens += (first + last) * item.tokens / 2;
  }
  return shape;
}

Duration LinearCost::operator()(const StepShape& shape) const {
  return from_seconds(step + prefill_token * shape.prefill_tokens +
                      decode_token * shape.decode_tokens +
                      context_token * static_cast<double>(shape.context_tokens) +
                      segment * shape.segments + (shape.switches ? switching : 0));
}

}  // namespace valora::sim
