// Counts requests and tokens by the adapter that answered.
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
  // Beyond this number of names, the least recently used are dropped.
  static constexpr size_t kMostNames = 65536;

  struct Counts {
    uint64_t requests = 0, prompt_tokens = 0, generated_tokens = 0;
    int64_t last_used = 0;      // Unix time; 0: never
    DurationCounts ttft, tpot;  // of its requests; tpot: only of those with a second token
    // log2 of the number of requests, where a request counts half as much as one made kHalfLife
    // later. At any time, the busier of two names has the larger value.
    double heat = kCold;
  };
  static constexpr double kHalfLife = 600;  // seconds
  static constexpr double kCold = -1e300;

  // Counts an answered request for each of its adapters, or for "" (the base model) if it has none.
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
