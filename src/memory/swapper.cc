#include "memory/swapper.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

namespace valora::memory {
namespace {

constexpr double kLeavesLast = std::numeric_limits<double>::infinity();

// A node with its value; ties are broken by last use.
struct Candidate {
  double value = 0;
  TimePoint last_use{};
  AnyNode node;
};

bool less_valuable(const Candidate& a, const Candidate& b) {
  return a.value != b.value ? a.value < b.value : a.last_use < b.last_use;
}
bool more_valuable(const Candidate& a, const Candidate& b) { return less_valuable(b, a); }

// A priority queue of candidates that accepts additions while it is drained.
class Queue {
 public:
  using Before = bool (*)(const Candidate&, const Candidate&);
  explicit Queue(Before before) : after_{before} {}

  void reserve(size_t size) { heap_.reserve(size); }
  void fill(Candidate candidate) { heap_.push_back(candidate); }  // before make()
  void make() { std::ranges::make_heap(heap_, after_); }
  void push(Candidate candidate) {
    heap_.push_back(candidate);
    std::ranges::push_heap(heap_, after_);
  }
  bool empty() const { return heap_.empty(); }
  Candidate pop() {
    std::ranges::pop_heap(heap_, after_);
    const Candidate first = heap_.back();
    heap_.pop_back();
    return first;
  }

 private:
  struct After {
    Before before;
    bool operator()(const Candidate& a, const Candidate& b) const { return before(b, a); }
  };

  After after_;
  std::vector<Candidate> heap_;
};

bool may_leave(const KvNode& node) { return node.flight == Flight::kNone && !node.leaving; }

// One call of leave(). Evicting a node may turn its parent into a leaf, which becomes a candidate.
class Leaving {
 public:
  Leaving(const Swapper& swapper, const DependencyTree& tree, const SwapStatistics& s, Kinds kinds)
      : swapper_(swapper), tree_(tree), s_(s) {
    if (kinds != Kinds::kAdapters) {
      queue_.reserve(tree.idle_leaves().size() + tree.adapters().size());
      for (KvNode* node : tree.idle_leaves())
        if (may_leave(*node)) queue_.fill(candidate(*node));
    }
    adapters_too_ = kinds != Kinds::kKv;
    if (adapters_too_)
      for (const auto& [key, node] : tree.adapters())
        if (tree.evictable(node) && node.size > 0)
          queue_.fill(candidate(const_cast<AdapterNode&>(node)));  // NOLINT: the caller's node
    queue_.make();
  }

  std::vector<AnyNode> take(int32_t blocks) {
    std::vector<AnyNode> nodes;
    while (blocks > 0 && !queue_.empty()) {
      const Candidate first = queue_.pop();
      nodes.push_back(first.node);
      if (auto* const* kv = std::get_if<KvNode*>(&first.node)) {
        --blocks;
        uncover(**kv);
      } else {
        blocks -= std::get<AdapterNode*>(first.node)->size;
      }
    }
    return nodes;
  }

 private:
  Candidate candidate(KvNode& node) const {
    return {swapper_.log_eval(node, s_), node.last_use, &node};
  }
  Candidate candidate(AdapterNode& node) const {
    return {swapper_.log_eval(node, s_), node.last_use, &node};
  }

  // A node's parent or adapters become candidates once nothing else covers them.
  void uncover(const KvNode& node) {
    if (KvNode* parent = node.parent) {
      if (++chosen_children_[parent] == parent->present_children && parent->idle() &&
          may_leave(*parent))
        queue_.push(candidate(*parent));
      return;
    }
    if (!adapters_too_ || ++chosen_children_[node.root] < node.root->present_children) return;
    for (AdapterNode* adapter : node.root->adapters)
      if (++chosen_children_[adapter] == adapter->present_roots && !tree_.evictable(*adapter) &&
          adapter->resident() && !adapter->pinned())
        queue_.push(candidate(*adapter));
  }

  const Swapper& swapper_;
  const DependencyTree& tree_;
  const SwapStatistics& s_;
  bool adapters_too_ = true;
  Queue queue_{less_valuable};
  std::unordered_map<const void*, int32_t>
      chosen_children_;  // per parent: children chosen to leave
};

}  // namespace

double Swapper::log_eval(const AdapterNode& node, const SwapStatistics& s) const {
  if (config_.valuation) return config_.valuation->log_value(node, s);
  return std::log(s.load) +
         s.reuse->log_rate(ReuseModel::group_of(node, s.slot), idle_seconds(node, s));
}

double Swapper::log_eval(const KvNode& node, const SwapStatistics& s) const {
  if (node.awaited_until > s.now) return kLeavesLast;
  if (config_.valuation) return config_.valuation->log_value(node, s);
  return std::log(s.kv_restore_seconds()) +
         s.reuse->log_rate(ReuseModel::group_of(node), idle_seconds(node, s));
}

std::vector<AnyNode> Swapper::leave(const DependencyTree& tree, const SwapStatistics& s,
                                    int32_t blocks, Kinds kinds) const {
  if (blocks <= 0) return {};
  return Leaving(*this, tree, s, kinds).take(blocks);
}

std::vector<AnyNode> Swapper::bring(const DependencyTree& tree, const SwapStatistics& s,
                                    int32_t blocks, Kinds kinds) const {
  Queue queue(more_valuable);
  const auto visited = [&](const TreeNode& node) {
    return node.flight == Flight::kNone && node.rests_until <= s.now &&
           node.visits.count(s.slot) > 0;
  };
  if (kinds != Kinds::kKv)
    for (const auto& [key, node] : tree.adapters())
      if (!node.present() && node.size > 0 && !node.forgotten && visited(node))
        queue.fill({log_eval(node, s), node.last_use,
                    const_cast<AdapterNode*>(&node)});  // NOLINT: the caller's node
  if (kinds != Kinds::kAdapters)
    for (KvNode* node : tree.by_swap_block())
      if (node && !node->present() && visited(*node) &&
          (node->parent ? node->parent->resident() : node->root->usable()))
        queue.fill({log_eval(*node, s), node->last_use, node});
  queue.make();
  std::vector<AnyNode> nodes;
  while (blocks > 0 && !queue.empty()) {
    const Candidate first = queue.pop();
    auto* const* kv = std::get_if<KvNode*>(&first.node);
    const int32_t size = kv ? 1 : std::get<AdapterNode*>(first.node)->size;
    if (size > blocks) continue;
    blocks -= size;
    nodes.push_back(first.node);
    if (!kv) continue;
    for (KvNode* child : (*kv)->children)
      if (!child->present() && visited(*child))
        queue.push({log_eval(*child, s), child->last_use, child});
  }
  return nodes;
}

std::vector<KvNode*> Swapper::unswap(const DependencyTree& tree, const SwapStatistics& s,
                                     int32_t blocks) const {
  std::vector<KvNode*> nodes;
  Queue queue(less_valuable);
  for (KvNode* node : tree.by_swap_block()) {
    if (!node || node->flight != Flight::kNone) continue;
    if (!node->present()) {
      if (node->children.empty()) queue.fill({log_eval(*node, s), node->last_use, node});
    } else if (blocks > 0 && !node->leaving) {
      nodes.push_back(node);
      --blocks;
    }
  }
  queue.make();
  std::unordered_map<const KvNode*, size_t> gone;
  for (; blocks > 0 && !queue.empty(); --blocks) {
    KvNode* node = std::get<KvNode*>(queue.pop().node);
    nodes.push_back(node);
    KvNode* parent = node->parent;
    if (parent && !parent->present() && ++gone[parent] == parent->children.size())
      queue.push({log_eval(*parent, s), parent->last_use, parent});
  }
  return nodes;
}

}  // namespace valora::memory
