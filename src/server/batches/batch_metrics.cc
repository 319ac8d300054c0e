#include "server/batches/batch_metrics.h"

#include <algorithm>
#include <string>

#include "server/metrics/labelled.h"

namespace valora::server {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

}  // namespace

std::vector<MetricFamily> BatchCollector::Collect() const {
  const RowTotals& totals = runner_.totals();
  const BatchTally tally = runner_.store().tally();
  const auto in_flight = static_cast<double>(std::max<int64_t>(0, totals.in_flight));
  const auto left = static_cast<double>(tally.rows_left);
  std::vector<MetricFamily> out;
  const auto gauge = [&](const char* name, const char* help, double value) {
    out.push_back(MetricFamily{name, help, MetricType::Gauge, {}});
    out.back().metric.push_back(labelled(labels_));
    out.back().metric.back().gauge.value = value;
  };
  const auto counter = [&](const char* name, const char* help, uint64_t value) {
    out.push_back(MetricFamily{name, help, MetricType::Counter, {}});
    out.back().metric.push_back(labelled(labels_));
    out.back().metric.back().counter.value = static_cast<double>(value);
  };
  gauge("valora:batch_rows_waiting", "Rows of batches that are to be asked.",
        std::max(0.0, left - in_flight));
  gauge("valora:batch_rows_in_flight", "Rows of batches that are being answered.", in_flight);
  counter("valora:batch_rows_completed_total", "Rows of batches answered with 200.",
          totals.completed);
  counter("valora:batch_rows_failed_total", "Rows of batches with an error.", totals.failed);
  out.push_back(
      MetricFamily{"valora:batches", "Batches that are kept, by status.", MetricType::Gauge, {}});
  for (const BatchStatus status : kBatchStatuses) {
    const auto found = tally.by_status.find(status);
    auto& metric = out.back().metric.emplace_back(
        labelled(labels_, {{"status", std::string(batch_status_name(status))}}));
    metric.gauge.value = found == tally.by_status.end() ? 0 : static_cast<double>(found->second);
  }
  return out;
}

}  // namespace valora::server
