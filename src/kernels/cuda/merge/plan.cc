#include "kernels/cuda/merge.h"
#include "kernels/cuda/merge/tile.h"

namespace valora::kernels::cuda {

MergePlan plan_merge(Dtype dtype, const MergeItem* items, size_t count) {
  MergePlan plan;
  if (count > 0 && items[0].weight == nullptr) plan.bits = items[0].integers.bits;
  const auto vector = static_cast<int32_t>(16 / size_of(dtype));
  for (size_t i = 0; i < count; ++i) {
    const MergeItem& item = items[i];
    const auto tiles = [](int64_t n, int64_t tile) { return (n + tile - 1) / tile; };
    plan.merges.push_back({item, plan.tiles});
    plan.tiles += tiles(item.module.out, kMergeRows) * tiles(item.module.in, kMergeColumns);
    for (const void* p : {item.weight, static_cast<const void*>(item.merged)})
      plan.aligned = plan.aligned && reinterpret_cast<uintptr_t>(p) % 16 == 0;
    plan.aligned = plan.aligned && item.module.in % vector == 0;
  }
  return plan;
}

}  // namespace valora::kernels::cuda
