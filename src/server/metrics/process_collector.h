// The process_* metrics of Prometheus's client libraries, read from /proc at each scrape.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <optional>
#include <vector>

namespace valora::server {

struct ProcessTimes {
  double cpu_seconds = 0;  // user and system
  double started = 0;      // Unix time
  double virtual_bytes = 0;
  double resident_bytes = 0;

  static std::optional<ProcessTimes> read();  // nullopt: /proc can't be read
};

class ProcessCollector final : public prometheus::Collectable {
 public:
  // Families whose file can't be read are omitted.
  std::vector<prometheus::MetricFamily> Collect() const override;
};

}  // namespace valora::server
