#include "ops/merge/merge_targets.h"

namespace valora::ops {

void merge_aten(std::span<const Merge> merges) {
  const auto wide = [](const Weight& w) { return w.data().to(at::kFloat); };
  for (const Merge& m : merges) {
    const LoraWeight& lora = *m.adapter->find(m.module);  // plain, so the owning form
    at::Tensor merged = m.merged->data();
    merged.copy_(at::addmm(wide(*m.weight), wide(lora.b), wide(lora.a), 1, m.coefficient));
  }
}

}  // namespace valora::ops
