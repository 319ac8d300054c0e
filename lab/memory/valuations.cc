#include "lab/memory/valuations.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace valora::bench {
namespace {

constexpr double kWorthless = -std::numeric_limits<double>::infinity();

// log(1 - sigmoid(x)) for x >= 0
double log_recency(double x) { return x > 30 ? -x : -std::log1p(std::exp(x)); }

}  // namespace

void Benefit::update(const memory::DependencyTree& tree, const memory::SwapStatistics& s) {
  log_reward_ = 0;
  double low = 0, visits = 0;
  for (const auto& [key, node] : tree.adapters()) visits += node.visits.count(s.slot);
  if (!options_.adapter_reward || visits == 0) return;
  for (const auto& [key, node] : tree.adapters())
    low += 1 - std::pow(1 - node.visits.count(s.slot) / visits, s.batch);
  log_reward_ = std::log(std::max(1.0, low / std::max(1, tree.counts().adapters)));
}

double Benefit::retain(const memory::TreeNode& node, const memory::SwapStatistics& s,
                       double cost) const {
  const double visits = node.visits.count(s.slot);
  if (visits == 0) return kWorthless;
  return std::log(cost * visits / std::max(1.0, s.requests)) +
         log_recency(idle_seconds(node, s) / options_.recency_seconds);
}

double Benefit::log_value(const memory::AdapterNode& node, const memory::SwapStatistics& s) const {
  return retain(node, s, s.load) + log_reward_;
}

double Benefit::log_value(const memory::KvNode& node, const memory::SwapStatistics& s) const {
  return retain(node, s, s.kv_restore_seconds());
}

}  // namespace valora::bench
