#include "server/metrics/adapter_counts.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <numbers>

namespace valora::server {
namespace {

// log2(2^heat + 2^half_lives)
double warmed(double heat, double half_lives) {
  const double more = std::max(heat, half_lives), less = std::min(heat, half_lives);
  return more + std::log1p(std::exp2(less - more)) / std::numbers::ln2;
}

}  // namespace

// Drops half of the names at once, so that few requests pay for it.
void AdapterCounts::make_room() {
  std::vector<int64_t> times;
  for (const auto& [_, counts] : counts_) times.push_back(counts.last_used);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  const size_t most = counts_.size() / 2;
  for (auto it = counts_.begin(); it != counts_.end() && counts_.size() > most;)
    it = it->second.last_used <= *middle ? counts_.erase(it) : std::next(it);
}

void AdapterCounts::answered(const std::vector<AdapterUse>& uses, const Usage& usage,
                             const AnswerLatency& latency) {
  const int64_t now = std::time(nullptr);
  const std::lock_guard lock(mutex_);
  const auto count = [&](const std::string& name) {
    if (counts_.size() >= kMostNames && !counts_.contains(name)) make_room();
    Counts& counts = counts_[name];
    ++counts.requests;
    counts.prompt_tokens += static_cast<uint64_t>(usage.prompt_tokens);
    counts.generated_tokens += static_cast<uint64_t>(usage.completion_tokens);
    counts.last_used = now;
    counts.ttft.add(latency.ttft);
    if (latency.tpot > 0) counts.tpot.add(latency.tpot);
    counts.heat = warmed(counts.heat, static_cast<double>(now) / kHalfLife);
  };
  if (uses.empty()) return count("");
  for (const AdapterUse& use : uses) count(use.name);
}

std::map<std::string, AdapterCounts::Counts> AdapterCounts::all() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace valora::server
