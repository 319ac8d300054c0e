#include "lab/sim/simulated_executor.h"

#include <limits>

namespace valora::sim {

int32_t answer_token(scheduler::RequestId request, int position) {
  const uint64_t hash = DigestBuilder().add(request).add(position).finish().low;
  return -1 - static_cast<int32_t>(hash % std::numeric_limits<int32_t>::max());
}

Result<std::vector<scheduler::StepOutput>> SimulatedExecutor::run(const scheduler::StepPlan& plan) {
  clock_.advance(cost_(plan.shape));
  std::vector<scheduler::StepOutput> outputs;
  for (const scheduler::StepItem& item : plan.items) {
    if (!item.yields) continue;
    const int32_t token = answer_token(item.request->id, item.request->generated_tokens());
    outputs.push_back({item.request, {{.id = token}}, {}, {}});
  }
  return outputs;
}

}  // namespace valora::sim
