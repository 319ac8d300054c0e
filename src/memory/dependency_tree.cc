#include "memory/dependency_tree.h"

#include <cassert>

#include "base/reserve.h"

namespace valora::memory {

DependencyTree::DependencyTree(BlockArena& arena, BlockArena& swap, bool dependencies)
    : arena_(arena),
      swap_(swap),
      dependencies_(dependencies),
      by_block_(arena.total_blocks(), nullptr),
      by_swap_(swap.total_blocks(), nullptr),
      by_checkpoint_(arena.total_blocks(), nullptr) {
  leaves_.reserve(arena.total_blocks());  // at most one per block
  checkpoints_.reserve(arena.total_blocks());
}

// When a node turns busy or idle, its parent may do so too, and so on up to the root.
template <typename Change>
void DependencyTree::change(KvNode& node, Change&& apply) {
  KvNode* at = &node;
  bool was_busy = at->busy(), was_idle = at->idle();
  const bool was_held = node.held;
  apply();
  counts_.held_kv += static_cast<int32_t>(node.held) - static_cast<int32_t>(was_held);
  while (true) {
    counts_.idle_kv += static_cast<int32_t>(at->idle()) - static_cast<int32_t>(was_idle);
    update_lists(*at);
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

// Maintains leaves_: the idle nodes without children in the pool.
void DependencyTree::update_lists(KvNode& node) {
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

void DependencyTree::update_presence(KvNode& node, int step) {
  counts_.kv += step;
  node.root->blocks += step;
  if (node.parent) {
    node.parent->present_children += step;
    update_lists(*node.parent);
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
  if (const auto known = roots_.find(identity.adapter); known != roots_.end()) return known->second;
  KvRoot added{.identity = identity.adapter, .adapters = {}, .children = {}};
  for (const AdapterNeed& need : identity.of_all()) {
    if (need.blocks == 0) continue;
    AdapterNode& node = adapter(need);
    reserve_more(node.roots);
    added.adapters.push_back(&node);
  }
  KvRoot& root = roots_.emplace(identity.adapter, std::move(added)).first->second;
  for (AdapterNode* node : root.adapters) node->roots.push_back(&root);
  return root;
}

const KvRoot* DependencyTree::find_root(const Digest& identity) const {
  const auto it = roots_.find(identity);
  return it == roots_.end() ? nullptr : &it->second;
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
  auto& siblings = parent ? parent->children : root.children;
  reserve_more(siblings);
  const auto [it, added] = kv_nodes_.try_emplace(keys.back());
  KvNode& node = it->second;
  if (added) {
    node.key = keys.back();
    node.root = &root;
    node.parent = parent;
    node.place = siblings.size();
    siblings.push_back(&node);
    if (siblings.size() > 1)
      for (KvNode* above = parent; above && !above->shared; above = above->parent)
        above->shared = true;
    node.turn = parent && !parent->shared ? parent->turn : 1;
  } else if (node.present()) {
    return &node;
  }
  if (node.unreadable) drop_copy(node);
  arena_.retain(block);
  by_block_[block] = &node;
  change(node, [&] {
    node.block = block;
    node.held = arena_.references(block) > 1;
  });
  update_presence(node, 1);
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
  update_presence(node, 1);
}

void DependencyTree::end_fill(KvNode& node) {
  change(node, [&] { node.flight = Flight::kNone; });
}

void DependencyTree::cancel_fill(KvNode& node) { remove_from_pool(node); }

void DependencyTree::begin_save(KvNode& node, BlockId swapped) {
  assert(node.resident() && node.swapped == kNoBlock);
  node.flight = Flight::kOut;
  node.swapped = swapped;
  by_swap_[swapped] = &node;
}

void DependencyTree::end_save(KvNode& node) { node.flight = Flight::kNone; }

void DependencyTree::cancel_save(KvNode& node) {
  node.flight = Flight::kNone;
  drop_copy(node);
  set_leaving(node, false);
}

void DependencyTree::drop_copy(KvNode& node) {
  by_swap_[node.swapped] = nullptr;
  swap_.release(node.swapped);
  node.swapped = kNoBlock;
  node.unreadable = false;
}

void DependencyTree::remove_from_pool(KvNode& node) {
  if (!node.checkpoint.empty()) drop_checkpoint(node);
  change(node, [&] {
    node.flight = Flight::kNone;
    node.broken = false;
    by_block_[node.block] = nullptr;
    arena_.release(node.block);
    node.block = kNoBlock;
    set_leaving(node, false);
  });
  update_presence(node, -1);
}

int32_t DependencyTree::invalid_kv() const {
  int32_t blocks = 0;
  for (const auto& [identity, root] : roots_)
    if (root.blocks > 0 && !root.usable()) blocks += root.blocks;
  return blocks;
}

}  // namespace valora::memory
