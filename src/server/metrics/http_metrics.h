// The http_* metrics under the names that vLLM's server has.
#pragma once

#include <prometheus/registry.h>

#include <string>
#include <string_view>

#include "server/http/http.h"

namespace valora::server {

// Thread-safe.
class HttpMetrics {
 public:
  explicit HttpMetrics(prometheus::Registry& registry);

  // `route`: the path of a known route, "none" for others, so that clients can't add series.
  void answered(std::string_view route, const HttpOutcome& outcome);

 private:
  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Family<prometheus::Histogram>& durations_;
  prometheus::Family<prometheus::Summary>& request_sizes_;
  prometheus::Family<prometheus::Summary>& response_sizes_;
};

}  // namespace valora::server
