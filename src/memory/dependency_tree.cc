#include "memory/dependency_tree.h"

#include <algorithm>
#include <cassert>

namespace valora::memory {
namespace {

bool is_idle(const AdapterNode& node) { return node.resident() && !node.pinned(); }

// Parents before their children.
std::vector<KvNode*> with_descendants(std::vector<KvNode*> nodes) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    const std::vector<KvNode*>& children = nodes[i]->children;
    nodes.insert(nodes.end(), children.begin(), children.end());
  }
  return nodes;
}

template <typename List, typename Item>
void erase_from(List& list, const Item& item) {
  const auto it = std::ranges::find(list, item);
  *it = list.back();
  list.pop_back();
}

}  // namespace

DependencyTree::DependencyTree(BlockArena& arena, BlockArena& swap, bool dependencies)
    : arena_(arena),
      swap_(swap),
      dependencies_(dependencies),
      by_block_(arena.total_blocks(), nullptr),
      by_swap_(swap.total_blocks(), nullptr) {}

// A node that changes between idle and busy may change its parent, and so on up to the root.
template <typename Change>
void DependencyTree::change(KvNode& node, Change&& apply) {
  KvNode* at = &node;
  bool was_busy = at->busy(), was_idle = at->idle();
  apply();
  while (true) {
    counts_.idle_kv += static_cast<int32_t>(at->idle()) - static_cast<int32_t>(was_idle);
    relist(*at);
    KvNode* parent = at->parent;
    if (!parent || at->busy() == was_busy) return;
    const int step = at->busy() ? 1 : -1;
    if (step > 0) set_leaving(*parent, false);
    was_busy = parent->busy();
    was_idle = parent->idle();
    parent->busy_children += step;
    at = parent;
  }
}

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

// Keeps leaves_ equal to the idle nodes without children in the pool.
void DependencyTree::relist(KvNode& node) {
  const bool wanted = node.idle() && node.present_children == 0;
  if (wanted == (node.leaf >= 0)) return;
  if (wanted) {
    node.leaf = static_cast<int32_t>(leaves_.size());
    leaves_.push_back(&node);
  } else {
    leaves_[node.leaf] = leaves_.back();
    leaves_[node.leaf]->leaf = node.leaf;
    leaves_.pop_back();
    node.leaf = -1;
  }
}

void DependencyTree::count_presence(KvNode& node, int step) {
  counts_.kv += step;
  if (node.parent) {
    node.parent->present_children += step;
    relist(*node.parent);
    return;
  }
  KvRoot& root = *node.root;
  const bool before = root.present_children > 0;
  root.present_children += step;
  const int changed = static_cast<int>(root.present_children > 0) - static_cast<int>(before);
  for (AdapterNode* adapter : root.adapters) adapter->present_roots += changed;
}

void DependencyTree::set_leaving(KvNode& node, bool leaving) {
  if (node.leaving == leaving) return;
  node.leaving = leaving;
  counts_.leaving += leaving ? 1 : -1;
}

KvRoot& DependencyTree::root(const KvIdentity& identity) {
  const auto [it, added] = roots_.try_emplace(identity.adapter);
  KvRoot& root = it->second;
  if (!added) return root;
  root.identity = identity.adapter;
  for (const AdapterNeed& need : identity.adapters) {
    if (need.blocks == 0) continue;
    AdapterNode& node = adapter(need);
    node.roots.push_back(&root);
    root.adapters.push_back(&node);
  }
  return root;
}

const KvRoot* DependencyTree::find_root(const Digest& identity) const {
  const auto it = roots_.find(identity);
  return it == roots_.end() ? nullptr : &it->second;
}

void DependencyTree::erase_root(KvRoot& root) {
  for (AdapterNode* adapter : root.adapters) erase_from(adapter->roots, &root);
  roots_.erase(Digest(root.identity));
}

KvNode* DependencyTree::find(const KvRoot* root, const KvNode* parent, const Digest& key) {
  const auto it = kv_nodes_.find(key);
  if (it == kv_nodes_.end() || it->second.root != root || it->second.parent != parent)
    return nullptr;
  return &it->second;
}

KvNode* DependencyTree::find_node(const Digest& key) {
  const auto it = kv_nodes_.find(key);
  return it == kv_nodes_.end() ? nullptr : &it->second;
}

KvNode* DependencyTree::find_resident(const KvRoot& root, const Digest& key) {
  KvNode* node = find_node(key);
  return node && node->root == &root && node->resident() ? node : nullptr;
}

std::vector<KvNode*> DependencyTree::resident_prefix(const KvRoot* root,
                                                     std::span<const Digest> keys) {
  std::vector<KvNode*> path;
  if (!root) return path;
  for (const Digest& key : keys) {
    KvNode* node = find(root, path.empty() ? nullptr : path.back(), key);
    if (!node || !node->resident()) break;
    path.push_back(node);
  }
  return path;
}

KvNode* DependencyTree::insert(KvRoot& root, std::span<const Digest> keys, BlockId block) {
  if (keys.empty() || by_block_[block]) return nullptr;
  KvNode* parent = nullptr;
  if (keys.size() > 1) {
    parent = find_resident(root, keys[keys.size() - 2]);
    if (!parent) return nullptr;
  }
  const auto [it, added] = kv_nodes_.try_emplace(keys.back());
  KvNode& node = it->second;
  if (added) {
    node.key = keys.back();
    node.root = &root;
    node.parent = parent;
    auto& siblings = parent ? parent->children : root.children;
    node.place = siblings.size();
    siblings.push_back(&node);
  } else if (node.present()) {
    return &node;
  }
  arena_.retain(block);
  by_block_[block] = &node;
  change(node, [&] {
    node.block = block;
    node.held = arena_.references(block) > 1;
  });
  count_presence(node, 1);
  return &node;
}

void DependencyTree::hold(KvNode& node) {
  assert(node.resident());
  arena_.retain(node.block);
  if (!node.held) change(node, [&] { node.held = true; });
  set_leaving(node, false);
}

KvNode* DependencyTree::release(BlockId block) {
  arena_.release(block);
  KvNode* node = by_block_[block];
  if (!node || arena_.references(block) != 1) return nullptr;
  change(*node, [&] { node->held = false; });
  return node;
}

void DependencyTree::begin_fill(KvNode& node, BlockId block) {
  assert(!node.present() && node.flight == Flight::kNone);
  by_block_[block] = &node;
  change(node, [&] {
    node.block = block;
    node.flight = Flight::kIn;
  });
  count_presence(node, 1);
}

void DependencyTree::end_fill(KvNode& node) {
  change(node, [&] { node.flight = Flight::kNone; });
}

void DependencyTree::cancel_fill(KvNode& node) {
  change(node, [&] {
    node.flight = Flight::kNone;
    node.broken = false;
    leave_pool(node);
  });
  count_presence(node, -1);
}

void DependencyTree::begin_save(KvNode& node, BlockId swapped) {
  assert(node.resident() && node.swapped == kNoBlock);
  node.flight = Flight::kOut;
  node.swapped = swapped;
  by_swap_[swapped] = &node;
}

void DependencyTree::end_save(KvNode& node) { node.flight = Flight::kNone; }

void DependencyTree::cancel_save(KvNode& node) {
  node.flight = Flight::kNone;
  by_swap_[node.swapped] = nullptr;
  swap_.release(node.swapped);
  node.swapped = kNoBlock;
  set_leaving(node, false);
}

// Within change().
void DependencyTree::leave_pool(KvNode& node) {
  by_block_[node.block] = nullptr;
  arena_.release(node.block);
  node.block = kNoBlock;
  set_leaving(node, false);
}

void DependencyTree::evict(KvNode& node) {
  assert(node.leaf >= 0 && node.flight == Flight::kNone);
  change(node, [&] { leave_pool(node); });
  count_presence(node, -1);
  if (node.saved()) return;
  remove_below(node);
  remove(node);
}

void DependencyTree::unswap(KvNode& node) {
  assert(node.saved() && node.flight == Flight::kNone);
  by_swap_[node.swapped] = nullptr;
  swap_.release(node.swapped);
  node.swapped = kNoBlock;
  if (node.present()) return;
  remove_below(node);
  remove(node);
}

// What is below a node outside the pool is outside the pool, too, and not in flight.
void DependencyTree::remove_below(KvNode& node) {
  const std::vector<KvNode*> below = with_descendants(node.children);
  for (auto it = below.rbegin(); it != below.rend(); ++it) {
    KvNode& one = **it;
    assert(!one.present());
    by_swap_[one.swapped] = nullptr;
    swap_.release(one.swapped);
    remove(one);
  }
}

// Unlinks a node without children and without blocks.
void DependencyTree::remove(KvNode& node) {
  assert(node.children.empty() && !node.present());
  KvRoot& root = *node.root;
  auto& siblings = node.parent ? node.parent->children : root.children;
  siblings.back()->place = node.place;
  siblings[node.place] = siblings.back();
  siblings.pop_back();
  kv_nodes_.erase(Digest(node.key));
  if (root.children.empty()) erase_root(root);
}

void DependencyTree::clear(KvRoot& root) {
  const std::vector<KvNode*> below = with_descendants(root.children);
  // Removing the last node removes the root.
  for (auto it = below.rbegin(); it != below.rend(); ++it) {
    KvNode& node = **it;
    if (node.busy() || node.flight != Flight::kNone || !node.children.empty()) continue;
    if (node.present() && node.saved()) unswap(node);
    if (node.present())
      evict(node);
    else
      unswap(node);
  }
}

void DependencyTree::erase_if_empty(KvRoot& root) {
  if (root.children.empty()) erase_root(root);
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

void DependencyTree::displace(AdapterNode& node) {
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
  const std::vector<KvRoot*> roots = node.roots;
  for (KvRoot* root : roots) clear(*root);
  if (node.pinned() || node.flight != Flight::kNone || !node.roots.empty()) return false;
  if (node.present()) displace(node);
  adapters_.erase(Digest(node.key));
  return true;
}

int32_t DependencyTree::invalid_kv() const {
  int32_t blocks = 0;
  for (const auto& [identity, root] : roots_) {
    if (root.present_children == 0 || root.usable()) continue;
    std::vector<const KvNode*> below(root.children.begin(), root.children.end());
    for (size_t i = 0; i < below.size(); ++i) {
      if (!below[i]->present()) continue;
      ++blocks;
      below.insert(below.end(), below[i]->children.begin(), below[i]->children.end());
    }
  }
  return blocks;
}

}  // namespace valora::memory
