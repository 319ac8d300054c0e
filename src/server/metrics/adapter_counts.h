// Requests and tokens by the adapter that answered.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "api/answer.h"
#include "api/request.h"
#include "base/duration_counts.h"
#include "server/metrics/recent_latencies.h"

namespace valora::server {

// Thread-safe.
class AdapterCounts {
 public:
  // Beyond so many names, those that were used longest ago are forgotten.
  static constexpr size_t kMostNames = 65536;

  struct Counts {
    uint64_t requests = 0, prompt_tokens = 0, generated_tokens = 0;
    int64_t last_used = 0;      // Unix time; 0: never
    DurationCounts ttft, tpot;  // of its requests; tpot: of those with a second token
    // The logarithm of its requests, each worth half as much as one kHalfLife later. The busiest of
    // any two names has the larger one, at any time.
    double heat = kCold;
  };
  static constexpr double kHalfLife = 600;  // seconds
  static constexpr double kCold = -1e300;

  // An answered request counts for each of its adapters; for "", the base model, if it has none.
  void answered(const std::vector<AdapterUse>& uses, const Usage& usage,
                const AnswerLatency& latency);
  // By name.
  std::map<std::string, Counts> all() const;

 private:
  void make_room();

  mutable std::mutex mutex_;
  std::map<std::string, Counts> counts_;
};

}  // namespace valora::server
