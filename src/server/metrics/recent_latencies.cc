#include "server/metrics/recent_latencies.h"

#include <algorithm>
#include <vector>

namespace valora::server {
namespace {

// The value at this quantile, by nearest rank.
double quantile(std::vector<double>& values, double share) {
  const auto rank = static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

std::optional<RecentLatencies::Quantiles> quantiles(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  return RecentLatencies::Quantiles{quantile(values, 0.5), quantile(values, 0.99)};
}

}  // namespace

void RecentLatencies::add(const AnswerLatency& latency) noexcept {
  const std::lock_guard lock(mutex_);
  kept_[count_++ % kKept] = latency;
}

RecentLatencies::Summary RecentLatencies::summary() const {
  std::vector<double> ttft, tpot, e2e;
  {
    const std::lock_guard lock(mutex_);
    const size_t size = std::min(count_, kKept);
    for (size_t i = 0; i < size; ++i) {
      ttft.push_back(kept_[i].ttft);
      e2e.push_back(kept_[i].e2e);
      if (kept_[i].tpot > 0) tpot.push_back(kept_[i].tpot);
    }
  }
  const size_t answers = e2e.size();
  return {answers, quantiles(std::move(ttft)), quantiles(std::move(tpot)),
          quantiles(std::move(e2e))};
}

}  // namespace valora::server
