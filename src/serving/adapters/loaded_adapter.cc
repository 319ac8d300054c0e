#include "serving/adapters/loaded_adapter.h"

#include <algorithm>

namespace valora::serving {
namespace {

// Digest of the adapters for which counts(adapter) is true, with their scales. Digest{} if there is
// none.
template <typename Counts>
Digest digest_of(std::span<const AppliedAdapter> adapters, Counts&& counts) {
  DigestBuilder builder;
  bool any = false;
  for (const AppliedAdapter& use : adapters) {
    if (!counts(use)) continue;
    builder.add(use.adapter->digest).add(use.scale);
    any = true;
  }
  return any ? builder.finish() : Digest{};
}

}  // namespace

Digest identity_of(std::span<const AppliedAdapter> adapters) {
  return digest_of(adapters, [](const AppliedAdapter& use) { return use.adapter->has_weights; });
}

std::vector<memory::AdapterNeed> needs_of(std::span<const AppliedAdapter> adapters) {
  std::vector<memory::AdapterNeed> needs;
  for (const AppliedAdapter& use : adapters)
    if (use.adapter->need.blocks > 0 &&
        std::ranges::find(needs, use.adapter->digest, &memory::AdapterNeed::digest) == needs.end())
      needs.push_back(use.adapter->need);
  return needs;
}

Digest visual_key(std::span<const AppliedAdapter> adapters, const Digest& input) {
  const Digest changes = digest_of(adapters, changes_visuals);
  return changes == Digest{} ? input : DigestBuilder().add(changes).add(input).finish();
}

}  // namespace valora::serving
