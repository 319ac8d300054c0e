#include "engine/segments.h"

#include "engine/adapter_tensors.h"

namespace valora {

void append_segments(std::span<const serving::AppliedAdapter> uses,
                     const serving::LoadedAdapter* merged, int64_t begin, int64_t end,
                     ops::LoraBatch& lora) {
  const auto append = [&](const serving::LoadedAdapter& adapter, float coefficient) {
    if (coefficient != 0) lora.add(begin, end, weights_of(adapter), coefficient);
  };
  float of_merged = merged ? -1 : 0;
  for (const serving::AppliedAdapter& use : uses) {
    if (!use.adapter->on_decoder) continue;
    lora.add_outputs(begin, end, weights_of(*use.adapter), use.scale);
    if (merged && use.adapter->digest == merged->digest)
      of_merged += use.scale;
    else
      append(*use.adapter, use.scale);
  }
  if (merged) append(*merged, of_merged);
}

}  // namespace valora
