// Metrics of streams, read at each scrape (docs/metrics.md).
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/labels.h>

#include <utility>
#include <vector>

#include "streams/stream_set.h"

namespace valora::server {

class StreamCollector final : public prometheus::Collectable {
 public:
  // `streams` must outlive this object. `labels`: of every series.
  StreamCollector(const streams::StreamSet& streams, prometheus::Labels labels)
      : streams_(streams), labels_(std::move(labels)) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const streams::StreamSet& streams_;
  const prometheus::Labels labels_;
};

}  // namespace valora::server
