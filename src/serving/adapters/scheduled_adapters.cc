#include "serving/adapters/scheduled_adapters.h"

#include <algorithm>

namespace valora::serving {

void set_adapters(std::span<const AppliedAdapter> uses, scheduler::Request& request) {
  request.adapter = uses.empty() ? scheduler::kBaseModel : uses.front().adapter->id;
  const auto merging = std::ranges::find_if(
      uses, [](const AppliedAdapter& use) { return use.adapter->mergeable() && use.scale != 0; });
  if (merging != uses.end()) {
    request.merge = merging->adapter->id;
    request.merge_need = merging->adapter->need;
  }
  for (const AppliedAdapter& use : uses)
    if (use.adapter->on_decoder)
      request.decoder_adapters.push_back({use.adapter->id, use.adapter->rank, use.scale});
}

}  // namespace valora::serving
