#include "server/metrics/size_totals.h"

#include "server/metrics/labelled.h"

namespace valora::server {

void SizeTotals::observe(const std::string& route, size_t bytes) {
  const std::lock_guard lock(mutex_);
  Totals& totals = routes_[route];
  ++totals.count;
  totals.bytes += static_cast<double>(bytes);
}

prometheus::MetricFamily SizeTotals::family() const {
  prometheus::MetricFamily family;
  family.name = name_;
  family.help = help_;
  family.type = prometheus::MetricType::Summary;
  const std::lock_guard lock(mutex_);
  for (const auto& [route, totals] : routes_) {
    prometheus::ClientMetric metric = labelled({{"handler", route}});
    metric.summary.sample_count = totals.count;
    metric.summary.sample_sum = totals.bytes;
    family.metric.push_back(std::move(metric));
  }
  return family;
}

}  // namespace valora::server
