// The process_* metrics of Prometheus's client libraries, read from /proc at each scrape.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <vector>

namespace valora::server {

class ProcessCollector final : public prometheus::Collectable {
 public:
  // Families whose file can't be read are left out.
  std::vector<prometheus::MetricFamily> Collect() const override;
};

}  // namespace valora::server
