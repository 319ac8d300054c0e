// The adapter nodes of the tree.
#include <cassert>

#include "memory/dependency_tree.h"

namespace valora::memory {
namespace {

bool is_idle(const AdapterNode& node) { return node.resident() && !node.pinned(); }

}  // namespace

template <typename Change>
void DependencyTree::change(AdapterNode& node, Change&& apply) {
  const auto account = [&](int sign) {
    const auto blocks = static_cast<int32_t>(node.blocks.size());
    counts_.adapter_blocks += sign * blocks;
    counts_.adapters += sign * (node.present() ? 1 : 0);
    if (is_idle(node)) counts_.idle_adapter_blocks += sign * blocks;
  };
  account(-1);
  apply();
  account(1);
}

AdapterNode& DependencyTree::adapter(const AdapterNeed& need) {
  const auto [it, added] = adapters_.try_emplace(need.digest);
  if (added) {
    it->second.key = need.digest;
    it->second.size = need.blocks;
  }
  return it->second;
}

AdapterNode* DependencyTree::find_adapter(const Digest& digest) {
  const auto it = adapters_.find(digest);
  return it == adapters_.end() ? nullptr : &it->second;
}

const AdapterNode* DependencyTree::find_adapter(const Digest& digest) const {
  const auto it = adapters_.find(digest);
  return it == adapters_.end() ? nullptr : &it->second;
}

void DependencyTree::begin_load(AdapterNode& node, std::vector<BlockId> blocks) {
  assert(!node.present());
  change(node, [&] {
    node.blocks = std::move(blocks);
    node.flight = Flight::kIn;
  });
}

void DependencyTree::end_load(AdapterNode& node) {
  change(node, [&] { node.flight = Flight::kNone; });
}

void DependencyTree::release_blocks(AdapterNode& node) {
  change(node, [&] {
    for (const BlockId block : node.blocks) arena_.release(block);
    node.blocks.clear();
    node.flight = Flight::kNone;
  });
}

bool DependencyTree::evictable(const AdapterNode& node) const {
  return is_idle(node) && !(dependencies_ && node.present_roots > 0);
}

void DependencyTree::pin(AdapterNode& node, int step) {
  change(node, [&] { node.pins += step; });
}

void DependencyTree::keep(AdapterNode& node, bool kept) {
  change(node, [&] { node.kept = kept; });
}

bool DependencyTree::erase(AdapterNode& node) {
  // Backwards, because a removed root is replaced by the last one.
  for (size_t i = node.roots.size(); i-- > 0;) clear(*node.roots[i]);
  if (node.pinned() || node.flight != Flight::kNone || !node.roots.empty()) return false;
  if (node.present()) release_blocks(node);
  adapters_.erase(Digest(node.key));
  return true;
}

}  // namespace valora::memory
