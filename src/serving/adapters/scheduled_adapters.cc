#include "serving/adapters/scheduled_adapters.h"

#include <algorithm>

namespace valora::serving {
namespace {

bool on_decoder(const AppliedAdapter& use) { return use.adapter->on_decoder && use.scale != 0; }

// Null: none. An adapter that is merged only for its own requests must be all that they apply,
// since any difference to the merged weights would bring in their rounding.
const AppliedAdapter* merging(std::span<const AppliedAdapter> uses) {
  const bool alone = std::ranges::count_if(uses, on_decoder) == 1;
  const auto found = std::ranges::find_if(uses, [&](const AppliedAdapter& use) {
    switch (use.adapter->merges()) {
      case MergeUse::kNever: return false;
      case MergeUse::kAlone: return alone && use.scale == 1;
      case MergeUse::kAmongOthers: return use.scale != 0;
    }
    return false;
  });
  return found == uses.end() ? nullptr : &*found;
}

}  // namespace

void set_adapters(std::span<const AppliedAdapter> uses, scheduler::Request& request) {
  request.adapter = uses.empty() ? scheduler::kBaseModel : uses.front().adapter->id;
  if (const AppliedAdapter* use = merging(uses)) {
    request.merge = use->adapter->id;
    request.merges_among_others = use->adapter->merges() == MergeUse::kAmongOthers;
    request.merge_need = use->adapter->need;
  }
  for (const AppliedAdapter& use : uses)
    if (use.adapter->on_decoder)
      request.decoder_adapters.push_back({use.adapter->id, use.adapter->rank, use.scale});
}

}  // namespace valora::serving
