// The orders in which other systems evict, for comparison with learned visit rates.
#pragma once

#include "memory/swapper.h"

namespace valora::bench {

struct BenefitOptions {
  bool adapter_reward = true;  // apply LoRA_Eval; false: use 1
  double recency_seconds = 1;  // τ
};

// FastLibra's Eval = LoRA_Eval × cost × prob × (1 - sigmoid(t / τ)). cost: seconds per block to
// bring the node back; prob: share of the window's requests that visited it; t: seconds since its
// last use; LoRA_Eval (adapters only) = max(1, Low / Now), where Low = Σ (1 - (1 - prob)^BS) over
// all adapters and Now is the number in the pool.
class Benefit final : public memory::Valuation {
 public:
  explicit Benefit(const BenefitOptions& options = {}) : options_(options) {}

  void update(const memory::DependencyTree& tree, const memory::SwapStatistics& s) override;
  double log_value(const memory::AdapterNode& node, const memory::SwapStatistics& s) const override;
  double log_value(const memory::KvNode& node, const memory::SwapStatistics& s) const override;
  double log_reward() const { return log_reward_; }  // log(LoRA_Eval) as of the last update

 private:
  double retain(const memory::TreeNode& node, const memory::SwapStatistics& s, double cost) const;

  const BenefitOptions options_;
  double log_reward_ = 0;
};

// The least recently used node leaves first.
class Lru final : public memory::Valuation {
 public:
  double log_value(const memory::AdapterNode& node,
                   const memory::SwapStatistics& s) const override {
    return -idle_seconds(node, s);
  }
  double log_value(const memory::KvNode& node, const memory::SwapStatistics& s) const override {
    return -idle_seconds(node, s);
  }
};

}  // namespace valora::bench
