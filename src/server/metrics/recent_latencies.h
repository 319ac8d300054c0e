// The latencies of recent answers, and their quantiles.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <optional>

namespace valora::server {

// In seconds. For a request with several prompts, the longest of each.
struct AnswerLatency {
  double ttft = 0;
  double tpot = 0;  // 0: no further token
  double e2e = 0;
};

// Thread-safe.
class RecentLatencies {
 public:
  static constexpr size_t kKept = 512;

  struct Quantiles {
    double p50 = 0, p99 = 0;
  };
  struct Summary {
    size_t answers = 0;  // at most kKept
    std::optional<Quantiles> ttft, tpot, e2e;
  };

  void add(const AnswerLatency& latency) noexcept;
  Summary summary() const;

 private:
  mutable std::mutex mutex_;
  std::array<AnswerLatency, kKept> kept_;
  size_t count_ = 0;
};

}  // namespace valora::server
