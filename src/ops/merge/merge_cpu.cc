#include "kernels/cpu/merge/merge.h"

#include <vector>

#include "ops/device/parallel.h"
#include "ops/merge/merge_targets.h"
#include "ops/weights/weight_cpu.h"

namespace valora::ops {

void merge_cpu(std::span<const Merge> merges) {
  with_cpu_type(merges[0].weight->dtype(), [&](auto t) {
    using T = decltype(t);
    std::vector<kernels::Merge<T>> list;
    list.reserve(merges.size());
    for (const Merge& m : merges) {
      const kernels::LoraModule& lora = *m.adapter->module(m.module);
      list.push_back({panels_of<T>(*m.weight), raw<T>(m.merged->data()),
                      kernels::panels_of_factor<T>(lora.a, lora.rank, lora.in),
                      kernels::panels_of_factor<T>(lora.b, lora.out, lora.rank), m.coefficient,
                      integers_of(*m.weight)});
    }
    kernels::merge<T>(list, torch_parallel());
  });
}

}  // namespace valora::ops
