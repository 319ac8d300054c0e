#include "memory/dependency_tree.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/reserve.h"

namespace valora::memory {
namespace {

KvNode* deepest(KvNode* node) {
  while (!node->children.empty()) node = node->children.back();
  return node;
}

// Visits these siblings and their descendants, children before parents and the last sibling first.
// body may remove the node it is called with.
template <typename Body>
void visit_upwards(const std::vector<KvNode*>& top, Body&& body) {
  if (top.empty()) return;
  const KvNode* const above = top.front()->parent;
  KvNode* at = deepest(top.back());
  while (true) {
    KvNode* const parent = at->parent;
    const size_t place = at->place;
    body(*at);
    if (place > 0)
      at = deepest((parent == above ? top : parent->children)[place - 1]);
    else if (parent == above)
      return;  // `top` may have been freed
    else
      at = parent;
  }
}

template <typename List, typename Item>
void erase_from(List& list, const Item& item) {
  const auto it = std::ranges::find(list, item);
  *it = list.back();
  list.pop_back();
}

bool is_idle(const AdapterNode& node) { return node.resident() && !node.pinned(); }

}  // namespace

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

// ---- removal of KV nodes, and of roots that have become empty ----

void DependencyTree::evict(KvNode& node) {
  assert(node.leaf >= 0 && node.flight == Flight::kNone);
  remove_from_pool(node);
  if (node.saved()) return;
  remove_below(node);
  remove(node);
}

void DependencyTree::unswap(KvNode& node) {
  assert(node.saved() && node.flight == Flight::kNone);
  drop_copy(node);
  if (node.present()) return;
  remove_below(node);
  remove(node);
}

// Everything below a node outside the pool is also outside the pool and not in flight.
void DependencyTree::remove_below(KvNode& node) {
  visit_upwards(node.children, [this](KvNode& one) {
    assert(!one.present());
    drop_copy(one);
    remove(one);
  });
}

// Unlinks a node that has neither children nor blocks.
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
  // Removing the last node also removes the root.
  visit_upwards(root.children, [this](KvNode& node) {
    if (node.busy() || node.flight != Flight::kNone || !node.children.empty()) return;
    if (node.present() && node.saved()) unswap(node);
    if (node.present())
      evict(node);
    else
      unswap(node);
  });
}

void DependencyTree::erase_if_empty(KvRoot& root) {
  if (root.children.empty()) erase_root(root);
}

void DependencyTree::erase_root(KvRoot& root) {
  for (AdapterNode* adapter : root.adapters) erase_from(adapter->roots, &root);
  roots_.erase(Digest(root.identity));
}

// ---- adapter nodes ----

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

// ---- checkpoints: the states of sequences at the ends of the nodes' blocks ----

bool DependencyTree::idle_checkpoint(const KvNode& node) const {
  return !node.checkpoint.empty() && arena_.references(node.checkpoint.front()) == 1;
}

void DependencyTree::set_checkpoint(KvNode& node, std::vector<BlockId> blocks) {
  assert(node.resident() && node.checkpoint.empty() && !blocks.empty());
  const auto count = static_cast<int32_t>(blocks.size());
  by_checkpoint_[blocks.front()] = &node;
  node.checkpoint = std::move(blocks);
  node.checkpoint_place = static_cast<int32_t>(checkpoints_.size());
  checkpoints_.push_back(&node);  // the constructor reserved capacity
  counts_.checkpoint_blocks += count;
  counts_.idle_checkpoint_blocks += idle_checkpoint(node) ? count : 0;
}

void DependencyTree::drop_checkpoint(KvNode& node) {
  const auto count = static_cast<int32_t>(node.checkpoint.size());
  counts_.checkpoint_blocks -= count;
  counts_.idle_checkpoint_blocks -= idle_checkpoint(node) ? count : 0;
  by_checkpoint_[node.checkpoint.front()] = nullptr;
  for (const BlockId block : node.checkpoint) arena_.release(block);
  node.checkpoint.clear();
  KvNode* const last = checkpoints_.back();
  checkpoints_[node.checkpoint_place] = last;
  last->checkpoint_place = node.checkpoint_place;
  checkpoints_.pop_back();
  node.checkpoint_place = -1;
}

std::vector<BlockId> DependencyTree::hold_checkpoint(const KvNode& node) {
  std::vector<BlockId> blocks = node.checkpoint;
  if (idle_checkpoint(node)) counts_.idle_checkpoint_blocks -= static_cast<int32_t>(blocks.size());
  for (const BlockId block : blocks) arena_.retain(block);
  return blocks;
}

void DependencyTree::release_checkpoint(std::vector<BlockId>& blocks) {
  if (blocks.empty()) return;
  const KvNode* node = by_checkpoint_[blocks.front()];
  for (const BlockId block : blocks) arena_.release(block);
  if (node && idle_checkpoint(*node))
    counts_.idle_checkpoint_blocks += static_cast<int32_t>(blocks.size());
  blocks.clear();
}

}  // namespace valora::memory
