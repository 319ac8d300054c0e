#include <algorithm>

#include "kernels/cuda/merge.h"
#include "kernels/cuda/merge/tile.h"

namespace valora::kernels::cuda {

ProductShape merge_shape(Dtype dtype, const MergeItem* items, size_t count, CudaArch arch) {
  ProductShape shape{ProductKind::kMerge, dtype == Dtype::kFloat, arch, 1, 0, 0};
  for (size_t i = 0; i < count; ++i) {
    const DeviceLoraModule& module = items[i].module;
    shape.n += int64_t{module.out} * module.in;
    shape.k = std::max<int64_t>(shape.k, module.rank);
  }
  return shape;
}

MergePlan plan_merge(Dtype dtype, const MergeItem* items, size_t count, const CudaTile& tile) {
  MergePlan plan;
  if (count > 0 && items[0].weight == nullptr) plan.bits = items[0].integers.bits;
  const auto vector = static_cast<int32_t>(16 / size_of(dtype));
  for (size_t i = 0; i < count; ++i) {
    const MergeItem& item = items[i];
    plan.max_rank = std::max(plan.max_rank, item.module.rank);
    for (const void* p : {item.weight, static_cast<const void*>(item.merged)})
      plan.aligned = plan.aligned && reinterpret_cast<uintptr_t>(p) % 16 == 0;
    plan.aligned = plan.aligned && item.module.in % vector == 0;
  }
  // The kernel for other dtypes and alignments has one tile.
  const bool chosen = dtype != Dtype::kFloat && plan.aligned;
  plan.tile = effective_cuda_tile(merge_shape(dtype, items, count, CudaArch::kSm80),
                                  chosen ? tile : CudaTile{.width = kMergeRows});
  for (size_t i = 0; i < count; ++i) {
    const MergeItem& item = items[i];
    const auto tiles = [](int64_t n, int64_t tile) { return (n + tile - 1) / tile; };
    plan.merges.push_back({item, plan.tiles});
    plan.tiles += tiles(item.module.out, plan.tile.width) * tiles(item.module.in, kMergeColumns);
  }
  return plan;
}

}  // namespace valora::kernels::cuda
