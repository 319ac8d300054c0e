#include "server/metrics/http_metrics.h"

#include <fmt/format.h>
#include <prometheus/counter.h>
#include <prometheus/histogram.h>

namespace valora::server {
namespace {

const prometheus::Histogram::BucketBoundaries kDurations = {.1, .5, 1};

std::string known_method(const std::string& method) {
  for (const char* known : {"GET", "HEAD", "POST", "OPTIONS"})
    if (method == known) return method;
  return "other";
}

}  // namespace

HttpMetrics::HttpMetrics(prometheus::Registry& registry)
    : requests_(prometheus::BuildCounter()
                    .Name("http_requests_total")
                    .Help("HTTP requests by method, status and route.")
                    .Register(registry)),
      durations_(prometheus::BuildHistogram()
                     .Name("http_request_duration_seconds")
                     .Help("Time from the end of the request header to the end of the answer.")
                     .Register(registry)) {}

void HttpMetrics::answered(std::string_view route, const HttpOutcome& outcome) {
  const auto status = static_cast<size_t>(outcome.status);
  if (status < by_status_.size()) ++by_status_[status];
  const std::string handler(route);
  const std::string method = known_method(outcome.method);
  requests_
      .Add({{"handler", handler},
            {"method", method},
            {"status", fmt::format("{}xx", outcome.status / 100)}})
      .Increment();
  durations_.Add({{"handler", handler}, {"method", method}}, kDurations).Observe(outcome.seconds);
  request_sizes_.observe(handler, outcome.request_bytes);
  response_sizes_.observe(handler, outcome.response_bytes);
}

std::map<int, uint64_t> HttpMetrics::by_status() const {
  std::map<int, uint64_t> out;
  for (size_t status = 0; status < by_status_.size(); ++status)
    if (const uint64_t count = by_status_[status]) out[static_cast<int>(status)] = count;
  return out;
}

std::vector<prometheus::MetricFamily> HttpMetrics::sizes() const {
  return {request_sizes_.family(), response_sizes_.family()};
}

}  // namespace valora::server
