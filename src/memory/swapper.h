// Decides what leaves the pool and what comes in (FastLibra §5), by the time that a node's presence
// is expected to save per block and second. Pure: results depend only on the arguments.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "memory/dependency_tree.h"
#include "memory/reuse_model.h"

namespace valora::memory {

// The swapper's inputs other than the tree.
struct SwapStatistics {
  TimePoint now{};
  Slot slot = 0;        // current slot of the visit windows
  double requests = 0;  // within the visit window
  double batch = 0;     // mean sequences per step over the last seconds; BS in the paper
  // Seconds per pool block:
  double load = 0;                    // loading an adapter from its file
  double read = 0;                    // reading KV from the swap space
  double compute = 0;                 // recomputing KV
  bool swaps = false;                 // there is a swap space
  const ReuseModel* reuse = nullptr;  // not null without a Valuation

  // True if reading a KV block back is faster than recomputing it.
  bool swap_pays_off() const { return swaps && read < compute; }
  double kv_restore_seconds() const { return swap_pays_off() ? read : compute; }
};

// Another way to value nodes, for comparisons (lab/memory/valuations.h). Values are logarithms,
// which avoid underflow, per block of the pool.
class Valuation {
 public:
  virtual ~Valuation() = default;
  // Called every period, before the swapper's plan.
  virtual void update(const DependencyTree&, const SwapStatistics&) {}
  virtual double log_value(const AdapterNode& node, const SwapStatistics& s) const = 0;
  virtual double log_value(const KvNode& node, const SwapStatistics& s) const = 0;
};

struct SwapperConfig {
  double high = 0.95;  // shares of the pool: evict above `high`, bring in below `low`
  double low = 0.70;
  std::shared_ptr<Valuation> valuation;  // of one pool; null: by learned visit rates
};

// Seconds since the node's last use.
inline double idle_seconds(const TreeNode& node, const SwapStatistics& s) {
  return std::max(0.0, seconds(s.now - node.last_use));
}

// A node to evict or bring in.
using AnyNode = std::variant<AdapterNode*, KvNode*>;

inline TreeNode& tree_node(const AnyNode& node) {
  return std::visit([](auto* one) -> TreeNode& { return *one; }, node);
}

// The kinds of nodes to consider. A pool with a fixed share for adapters asks for each kind
// separately.
enum class Kinds : uint8_t { kAll, kAdapters, kKv };

class Swapper {
 public:
  explicit Swapper(SwapperConfig config) : config_(std::move(config)) {}

  const SwapperConfig& config() const { return config_; }

  // The logarithm of the value of keeping a node, per block: seconds per block to bring the node
  // back × visits per second at the measured rates (memory/reuse_model.h), unless there is a
  // Valuation. KV that a waiting request asked for is certain to be visited, so it is valued above
  // all else.
  double log_eval(const AdapterNode& node, const SwapStatistics& s) const;
  double log_eval(const KvNode& node, const SwapStatistics& s) const;

  // Nodes to evict, in order, until `blocks` are freed or candidates run out. A node comes after
  // the nodes that depend on it; adapters do so only if the tree keeps dependencies. Excludes nodes
  // in flight or already leaving.
  std::vector<AnyNode> leave(const DependencyTree& tree, const SwapStatistics& s, int32_t blocks,
                             Kinds kinds = Kinds::kAll) const;
  // Absent nodes to bring into at most `blocks` free blocks, best first. A node comes after the
  // nodes it depends on. Only nodes visited within the window, and not in their rest after a move.
  std::vector<AnyNode> bring(const DependencyTree& tree, const SwapStatistics& s, int32_t blocks,
                             Kinds kinds = Kinds::kAll) const;
  // Nodes to drop from the swap space, in order: first nodes that are also in the pool, then the
  // least valuable.
  std::vector<KvNode*> unswap(const DependencyTree& tree, const SwapStatistics& s,
                              int32_t blocks) const;

 private:
  SwapperConfig config_;
};

}  // namespace valora::memory
