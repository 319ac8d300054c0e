// The http_* metrics, named as in vLLM's server.
#pragma once

#include <prometheus/registry.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/http.h"
#include "server/metrics/size_totals.h"

namespace valora::server {

// Thread-safe.
class HttpMetrics {
 public:
  explicit HttpMetrics(prometheus::Registry& registry);

  // `route`: the path of a known route, or "none", so that clients can't add series.
  void answered(std::string_view route, const HttpOutcome& outcome);

  // Number of answers so far, by status.
  std::map<int, uint64_t> by_status() const;
  // The families that are not in the registry.
  std::vector<prometheus::MetricFamily> sizes() const;

 private:
  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Family<prometheus::Histogram>& durations_;
  std::array<std::atomic<uint64_t>, 600> by_status_{};
  SizeTotals request_sizes_{"http_request_size_bytes", "Bytes of request bodies."};
  SizeTotals response_sizes_{"http_response_size_bytes", "Bytes of answers."};
};

}  // namespace valora::server
