#include "kernels/cuda/merge.h"

#include <set>

#include "kernels/tiles/choose.h"
#include "ops/device/cuda_types.h"
#include "ops/lora/lora_cuda.h"
#include "ops/merge/merge_targets.h"

namespace valora::ops {

namespace {

namespace cuda = kernels::cuda;

cuda::MergeItem item_of(const Merge& m) {
  const Weight& w = *m.weight;
  cuda::MergeItem item{w.quantised() ? nullptr : w.data().const_data_ptr(),
                       m.merged->data().data_ptr(),
                       on_device(*m.adapter, w.data().device()).modules[m.module],
                       m.coefficient,
                       {}};
  if (w.matrix()) item.integers = *w.matrix();
  return item;
}

}  // namespace

// Uses one launch per element that the weights have.
void merge_cuda(std::span<const Merge> merges) {
  const Weight& first = *merges[0].weight;
  std::set<int> elements;
  for (const Merge& m : merges) elements.insert(m.weight->encoding().bits);
  for (const int bits : elements) {
    std::vector<cuda::MergeItem> items;
    for (const Merge& m : merges)
      if (m.weight->encoding().bits == bits) items.push_back(item_of(m));
    const cuda::Dtype dtype = cuda_dtype(first.dtype());
    const kernels::CudaTile tile =
        kernels::choose_cuda_tile(cuda::merge_shape(dtype, items.data(), items.size(), gpu_arch()));
    const cuda::MergePlan plan = cuda::plan_merge(dtype, items.data(), items.size(), tile);
    DeviceTables memory;
    const size_t table = memory.add(plan.merges);
    memory.copy_to(first.data().device());
    check_launch(
        cuda::merge(dtype, plan, memory.at<cuda::DeviceMerge>(table), stream_of(first.data())),
        "merge");
  }
}

}  // namespace valora::ops
