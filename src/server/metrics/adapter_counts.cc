#include "server/metrics/adapter_counts.h"

#include <algorithm>
#include <ctime>

namespace valora::server {

// Half of the names go at once, so that a request seldom pays for it.
void AdapterCounts::make_room() {
  std::vector<int64_t> times;
  for (const auto& [_, counts] : counts_) times.push_back(counts.last_used);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  const size_t most = counts_.size() / 2;
  for (auto it = counts_.begin(); it != counts_.end() && counts_.size() > most;)
    it = it->second.last_used <= *middle ? counts_.erase(it) : std::next(it);
}

void AdapterCounts::answered(const std::vector<AdapterUse>& uses, const Usage& usage) {
  const int64_t now = std::time(nullptr);
  const std::lock_guard lock(mutex_);
  const auto count = [&](const std::string& name) {
    if (counts_.size() >= kMostNames && !counts_.contains(name)) make_room();
    Counts& counts = counts_[name];
    ++counts.requests;
    counts.prompt_tokens += static_cast<uint64_t>(usage.prompt_tokens);
    counts.generated_tokens += static_cast<uint64_t>(usage.completion_tokens);
    counts.last_used = now;
  };
  if (uses.empty()) return count("");
  for (const AdapterUse& use : uses) count(use.name);
}

std::map<std::string, AdapterCounts::Counts> AdapterCounts::all() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace valora::server
