// Decides what leaves the pool and what comes in (FastLibra §5): by the expected time that a node's
// presence saves, per block and second of its stay. Pure: its answers depend only on the arguments.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "memory/dependency_tree.h"
#include "memory/reuse_model.h"

namespace valora::memory {

// What leaves first. kLearned: what saves the least by the rates of visits that were measured
// (memory/reuse_model.h). kBenefit: FastLibra's Eval, below. kLru: the least recently used.
enum class MemoryPolicy : uint8_t { kLearned, kBenefit, kLru };

struct SwapperConfig {
  MemoryPolicy policy = MemoryPolicy::kLearned;
  bool adapter_reward = true;  // of kBenefit: LoRA_Eval; false: 1
  double high = 0.95;          // shares of the pool: nodes leave above, and come in below
  double low = 0.70;
  double recency_seconds = 1;  // of kBenefit: τ
};

// The swapper's inputs besides the tree.
struct SwapStatistics {
  TimePoint now{};
  Slot slot = 0;        // of the visit windows
  double requests = 0;  // in the visit window
  double batch = 0;     // mean sequences per step of the last seconds: BS of the paper
  // Seconds per pool block:
  double load = 0;                    // to load an adapter from its file
  double read = 0;                    // to read KV from the swap space
  double compute = 0;                 // to compute KV again
  bool swaps = false;                 // there is a swap space
  const ReuseModel* reuse = nullptr;  // not null with kLearned
  double log_reward = 0;              // of log_reward(), which need not be computed for each answer

  // True if reading a KV block back takes less time than computing it again.
  bool worth_saving() const { return swaps && read < compute; }
  double kv_back() const { return worth_saving() ? read : compute; }
};

// A node that may leave or come in.
using AnyNode = std::variant<AdapterNode*, KvNode*>;

inline TreeNode& tree_node(const AnyNode& node) {
  return std::visit([](auto* one) -> TreeNode& { return *one; }, node);
}

// Which nodes an answer may name. A pool with a fixed share for adapters asks for each kind alone.
enum class Kinds : uint8_t { kAll, kAdapters, kKv };

class Swapper {
 public:
  explicit Swapper(SwapperConfig config) : config_(config) {}

  const SwapperConfig& config() const { return config_; }

  // The logarithm of the value of keeping a node, per block: sums instead of products, no
  // underflow. kLearned: seconds per block to bring the node back × visits per second. kBenefit:
  // Eval = LoRA_Eval × cost × prob × (1 - sigmoid(t / τ)). cost: seconds per block to bring the
  // node back; prob: the share of the window's requests that visited it; t: seconds since its last
  // use; LoRA_Eval = max(1, Low / Now), of adapters only, with Low = Σ (1 - (1 - prob)^BS) over the
  // adapters and Now those in the pool. KV that a waiting request asked for is certain to be
  // visited: under every policy it is worth more than all else.
  double log_eval(const AdapterNode& node, const SwapStatistics& s) const;
  double log_eval(const KvNode& node, const SwapStatistics& s) const;
  // log(LoRA_Eval)
  double log_reward(const DependencyTree& tree, const SwapStatistics& s) const;

  // Nodes to remove from the pool, in order, until `blocks` are freed or no candidate is left. A
  // node comes after all that depend on it, adapters only if the tree keeps dependencies. Without
  // nodes that are in flight or leave already.
  std::vector<AnyNode> leave(const DependencyTree& tree, const SwapStatistics& s, int32_t blocks,
                             Kinds kinds = Kinds::kAll) const;
  // Absent nodes to bring into at most `blocks` free blocks, best first. A node comes after those
  // that it depends on. Only nodes that were visited within the window and that do not rest.
  std::vector<AnyNode> bring(const DependencyTree& tree, const SwapStatistics& s, int32_t blocks,
                             Kinds kinds = Kinds::kAll) const;
  // Nodes that lose their swap block, in order: first nodes that are also in the pool, then the
  // least valuable ones.
  std::vector<KvNode*> unswap(const DependencyTree& tree, const SwapStatistics& s,
                              int32_t blocks) const;

 private:
  double retain(const TreeNode& node, const SwapStatistics& s, double cost) const;

  SwapperConfig config_;
};

}  // namespace valora::memory
