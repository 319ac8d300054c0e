#include "kernels/cpu/merge/merge.h"

#include <vector>

#include "ops/merge_targets.h"
#include "ops/parallel.h"
#include "ops/weight_cpu.h"

namespace valora::ops {

void merge_cpu(std::span<const Merge> merges) {
  with_cpu_type(merges[0].weight->dtype(), [&](auto t) {
    using T = decltype(t);
    std::vector<kernels::Merge<T>> list;
    list.reserve(merges.size());
    for (const Merge& m : merges)
      list.push_back({panels_of<T>(*m.weight), raw<T>(m.merged->data()), panels_of<T>(m.adapter->a),
                      panels_of<T>(m.adapter->b), m.coefficient});
    kernels::merge<T>(list, torch_parallel());
  });
}

}  // namespace valora::ops
