#include "serving/adapters/loaded_adapter.h"

#include <algorithm>

namespace valora::serving {
namespace {

// Digest of the adapters for which counts(adapter) is true, with their scales. Digest{} if there
// are none.
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

std::vector<memory::AdapterNeed> LoadedAdapter::needs() const {
  std::vector<memory::AdapterNeed> all{need};
  for (const memory::AdapterNeed& part : parts)
    if (std::ranges::find(all, part.digest, &memory::AdapterNeed::digest) == all.end())
      all.push_back(part);
  return all;
}

Digest identity_of(std::span<const AppliedAdapter> adapters) {
  return digest_of(adapters, [](const AppliedAdapter& use) { return use.adapter->has_weights; });
}

std::vector<memory::AdapterNeed> needs_of(std::span<const AppliedAdapter> adapters) {
  std::vector<memory::AdapterNeed> needs;
  const auto add = [&](const memory::AdapterNeed& need) {
    if (need.blocks > 0 &&
        std::ranges::find(needs, need.digest, &memory::AdapterNeed::digest) == needs.end())
      needs.push_back(need);
  };
  for (const AppliedAdapter& use : adapters) {
    add(use.adapter->need);
    std::ranges::for_each(use.adapter->parts, add);
  }
  return needs;
}

int acts_from(const std::vector<int32_t>& invocation, std::span<const int32_t> prompt) {
  if (invocation.empty()) return 0;
  const auto last = std::ranges::find_end(prompt, invocation);
  return last.empty() ? kNever : static_cast<int>(last.begin() - prompt.begin());
}

int acts_from(std::span<const AppliedAdapter> adapters, std::span<const int32_t> prompt) {
  for (const AppliedAdapter& use : adapters)
    if (!use.adapter->invocation.empty()) return acts_from(use.adapter->invocation, prompt);
  return 0;
}

Status check_uses(std::span<const AppliedAdapter> adapters) {
  for (const AppliedAdapter& use : adapters) {
    if (use.adapter->language && adapters.size() > 1)
      return invalid("the adapter " + use.adapter->name +
                         " has tokens of its own, so it can only be used alone",
                     "lora");
    if (!use.adapter->invocation.empty() && adapters.size() > 1)
      return invalid("the adapter " + use.adapter->name +
                         " acts from its invocation on (activated LoRA), so it can only be used "
                         "alone",
                     "lora");
    if (!use.adapter->replaces || (adapters.size() == 1 && use.scale == 1)) continue;
    return invalid(
        "the adapter " + use.adapter->name +
            " replaces values of the base model (embeddings, output layer, biases or magnitudes), "
            "so it can only be used alone and at scale 1",
        "lora");
  }
  return {};
}

Digest visual_key(std::span<const AppliedAdapter> adapters, const Digest& input) {
  const Digest changes = digest_of(adapters, changes_visuals);
  return changes == Digest{} ? input : DigestBuilder().add(changes).add(input).finish();
}

}  // namespace valora::serving
