#include "kernels/cuda/merge.h"

#include "ops/cuda_types.h"
#include "ops/lora_cuda.h"
#include "ops/merge_targets.h"

namespace valora::ops {

void merge_cuda(std::span<const Merge> merges) {
  const at::Tensor& first = merges[0].weight->data();
  std::vector<kernels::cuda::MergeItem> items;
  for (const Merge& m : merges)
    items.push_back({m.weight->data().const_data_ptr(), m.merged->data().data_ptr(),
                     on_device(*m.adapter, first.device()).modules[m.module], m.coefficient});
  const kernels::cuda::Dtype dtype = cuda_dtype(first.scalar_type());
  const kernels::cuda::MergePlan plan =
      kernels::cuda::plan_merge(dtype, items.data(), items.size());
  DeviceTables memory;
  const size_t table = memory.add(plan.merges);
  memory.copy_to(first.device());
  check_launch(kernels::cuda::merge(dtype, plan, memory.at<kernels::cuda::DeviceMerge>(table),
                                    stream_of(first)),
               "merge");
}

}  // namespace valora::ops
