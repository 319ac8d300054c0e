#include "engine/segments.h"

namespace valora {

void append_segments(std::span<const AppliedAdapter> uses, const LoadedAdapter* merged,
                     int64_t begin, int64_t end, ops::LoraBatch& lora) {
  const auto append = [&](const LoadedAdapter& adapter, float coefficient) {
    if (coefficient != 0) lora.add(begin, end, *adapter.weights, coefficient);
  };
  float of_merged = merged ? -1 : 0;
  for (const AppliedAdapter& use : uses) {
    if (!use.adapter->on_decoder) continue;
    if (merged && use.adapter->digest == merged->digest)
      of_merged += use.scale;
    else
      append(*use.adapter, use.scale);
  }
  if (merged) append(*merged, of_merged);
}

}  // namespace valora
