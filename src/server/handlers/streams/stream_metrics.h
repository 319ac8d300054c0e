// Metrics of streams, read at each scrape (docs/metrics.md).
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/labels.h>

#include <utility>
#include <vector>

#include "streams/mqtt/mqtt_output.h"
#include "streams/stream_set.h"

namespace valora::server {

class StreamCollector final : public prometheus::Collectable {
 public:
  // `streams` and `mqtt` must outlive this object. mqtt: null: no broker. `labels`: of every
  // series.
  StreamCollector(const streams::StreamSet& streams, const streams::MqttOutput* mqtt,
                  prometheus::Labels labels)
      : streams_(streams), mqtt_(mqtt), labels_(std::move(labels)) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  void add_broker(std::vector<prometheus::MetricFamily>& out) const;

  const streams::StreamSet& streams_;
  const streams::MqttOutput* const mqtt_;
  const prometheus::Labels labels_;
};

}  // namespace valora::server
