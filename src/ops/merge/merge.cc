#include "ops/merge/merge.h"

#include "ops/device/dispatch.h"
#include "ops/merge/merge_targets.h"

namespace valora::ops {
namespace {

void check(const Merge& m, const Merge& first) {
  const Weight &w = *m.weight, &to = *m.merged;
  TORCH_CHECK(to.out() == w.out() && to.in() == w.in() && to.format() == w.format() &&
                  to.elements() == w.elements(),
              "merge: a weight of [", w.out(), ", ", w.in(), "] does not match its target of [",
              to.out(), ", ", to.in(), "]");
  TORCH_CHECK(!to.quantised(), "merge: the merged weight must be in floats, not integers");
  TORCH_CHECK(m.module >= 0 && static_cast<size_t>(m.module) < m.adapter->model_modules() &&
                  m.adapter->touches(m.module),
              "merge: the adapter does not change module ", m.module);
  const kernels::LoraModule& lora = *m.adapter->module(m.module);
  TORCH_CHECK(lora.in == w.in() && lora.out == w.out(), "merge: an adapter of [", lora.out, ", ",
              lora.in, "] does not match a weight of [", w.out(), ", ", w.in(), "]");
  TORCH_CHECK(w.format() == first.weight->format() && m.adapter->format() == w.format(),
              "merge: weights or adapters of different layouts or dtypes");
  TORCH_CHECK(m.adapter->resident(), "merge: the adapter is not resident; place it first");
}

}  // namespace

void merge(std::span<const Merge> merges) {
  if (merges.empty()) return;
  for (const Merge& m : merges) check(m, merges[0]);
  switch (target_of(*merges[0].weight)) {
    case Target::kCpu: return merge_cpu(merges);
    case Target::kCuda: return merge_cuda(merges);
    case Target::kAten: break;
  }
  merge_aten(merges);
}

}  // namespace valora::ops
