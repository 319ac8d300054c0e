#include "kernels/cuda/delta.h"

namespace valora::kernels::cuda {

StatePlan plan_states(const QuerySpan* spans, const StateSpan* states, size_t count, int64_t tokens,
                      int32_t state_blocks, int32_t first_block) {
  StatePlan plan;
  plan.span_of.assign(static_cast<size_t>(tokens), -1);
  const auto add = [&](const int32_t* list) {
    if (!list) return -1;
    const auto at = static_cast<int32_t>(plan.blocks.size());
    plan.blocks.insert(plan.blocks.end(), list, list + state_blocks);
    return first_block + at;
  };
  for (size_t i = 0; i < count; ++i) {
    DeviceStateSpan span{static_cast<int32_t>(spans[i].begin),
                         static_cast<int32_t>(spans[i].queries)};
    span.to = add(states[i].to);
    span.from = states[i].from == states[i].to ? span.to : add(states[i].from);
    for (int k = 0; k < StateSpan::kMostKept; ++k) {
      const StateSpan::Kept& kept = states[i].kept[static_cast<size_t>(k)];
      span.kept[k] = add(kept.blocks);
      span.after[k] = static_cast<int32_t>(kept.after);
    }
    plan.spans.push_back(span);
    for (int32_t row = span.begin; row < span.begin + span.count; ++row)
      plan.span_of[static_cast<size_t>(row)] = static_cast<int32_t>(i);
  }
  return plan;
}

}  // namespace valora::kernels::cuda
