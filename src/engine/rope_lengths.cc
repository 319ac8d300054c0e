#include "engine/rope_lengths.h"

#include <algorithm>
#include <vector>

#include "scheduler/request.h"

namespace valora {

at::Tensor rope_lengths(const scheduler::StepPlan& plan) {
  const auto changes = [](const scheduler::StepItem& item) {
    return item.request->identity.rope.variant(item.request->computed_tokens + item.tokens - 1) !=
           0;
  };
  if (std::ranges::none_of(plan.items, changes)) return {};
  std::vector<int64_t> lengths;
  for (const scheduler::StepItem& item : plan.items)
    for (int i = 0; i < item.tokens; ++i)
      lengths.push_back(item.request->identity.rope.of(item.request->computed_tokens + i));
  return at::tensor(lengths, at::kLong);
}

}  // namespace valora
