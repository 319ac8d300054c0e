// Removal of KV nodes and of roots that have become empty.
#include <algorithm>
#include <cassert>

#include "memory/dependency_tree.h"

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

}  // namespace

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

}  // namespace valora::memory
