// Outcomes of one application's requests, and how many met its latency targets.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/labels.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "server/applications/application.h"
#include "server/metrics/recent_latencies.h"

namespace valora::server {

// Thread-safe.
class ApplicationMetrics {
 public:
  // Shares of ended requests that met a target; nullopt: no target, or no request has ended.
  struct Attainment {
    std::optional<double> ttft, tpot, e2e;
  };

  // `registry` must outlive this object. All series exist from the start.
  ApplicationMetrics(prometheus::Registry& registry, const prometheus::Labels& labels,
                     const Application& application);

  void answered(const AnswerLatency& latency);
  void failed();   // misses every target
  void refused();  // with 429; not counted towards any target

  Attainment attainment() const;
  struct Ended {
    uint64_t ok = 0, error = 0, refused = 0;
  };
  Ended ended() const;
  RecentLatencies::Summary latencies() const { return latencies_->summary(); }

 private:
  struct Target {
    double seconds;
    prometheus::Counter& met;
    prometheus::Counter& missed;

    void count(bool is_met) { (is_met ? met : missed).Increment(); }
    std::optional<double> share() const;
  };

  prometheus::Counter& ok_;
  prometheus::Counter& error_;
  prometheus::Counter& refused_;
  std::optional<Target> ttft_, tpot_, e2e_;
  const std::unique_ptr<RecentLatencies> latencies_ = std::make_unique<RecentLatencies>();
};

}  // namespace valora::server
