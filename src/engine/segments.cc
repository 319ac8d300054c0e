#include "engine/segments.h"

#include <algorithm>

namespace valora {
namespace {

void append(const models::AdapterWeights& adapter, float coefficient, int64_t begin, int64_t end,
            std::vector<models::Segment>& segments) {
  if (coefficient == 0) return;
  const auto neighbour =
      std::find_if(segments.rbegin(), segments.rend(), [&](const models::Segment& s) {
        return s.adapter == &adapter && s.coefficient == coefficient && s.token_end == begin;
      });
  if (neighbour != segments.rend())
    neighbour->token_end = end;
  else
    segments.push_back({begin, end, &adapter, coefficient});
}

}  // namespace

void append_segments(std::span<const AppliedAdapter> uses, const LoadedAdapter* merged,
                     int64_t begin, int64_t end, std::vector<models::Segment>& segments) {
  float of_merged = merged ? -1 : 0;
  for (const AppliedAdapter& use : uses) {
    if (!use.adapter->on_decoder) continue;
    if (merged && use.adapter->digest == merged->digest)
      of_merged += use.scale;
    else
      append(use.adapter->weights, use.scale, begin, end, segments);
  }
  if (merged) append(merged->weights, of_merged, begin, end, segments);
}

}  // namespace valora
