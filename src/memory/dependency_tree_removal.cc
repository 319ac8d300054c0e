// Removal of KV nodes and of roots that became empty.
#include <algorithm>
#include <cassert>

#include "memory/dependency_tree.h"

namespace valora::memory {
namespace {

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

void DependencyTree::evict(KvNode& node) {
  assert(node.leaf >= 0 && node.flight == Flight::kNone);
  leave_pool(node);
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

void DependencyTree::erase_root(KvRoot& root) {
  for (AdapterNode* adapter : root.adapters) erase_from(adapter->roots, &root);
  roots_.erase(Digest(root.identity));
}

}  // namespace valora::memory
