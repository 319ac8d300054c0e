#include "serving/batch/segments.h"

namespace valora::serving {

void append_difference(std::span<const AppliedAdapter> uses, const LoadedAdapter* merged,
                       int64_t begin, int64_t end, std::vector<AdapterRows>& difference) {
  const auto append = [&](const LoadedAdapter& adapter, float coefficient) {
    if (coefficient != 0) difference.push_back({begin, end, &adapter, coefficient});
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

}  // namespace valora::serving
