#include "server/handlers/streams/stream_metrics.h"

#include <prometheus/metric_family.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "server/metrics/labelled.h"

namespace valora::server {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;
using streams::StreamState;

}  // namespace

// Sums over all streams that are there: a stream that is deleted takes its counts away.
std::vector<MetricFamily> StreamCollector::Collect() const {
  std::map<StreamState, int> states;
  for (const StreamState state : streams::kStreamStates) states[state] = 0;
  streams::StreamCounts sum;
  for (const streams::StreamPtr& stream : streams_.all()) {
    ++states[stream->state()];
    const streams::StreamCounts counts = stream->counts();
    sum.frames.dropped += counts.frames.dropped;
    sum.answered += counts.answered;
    sum.skipped += counts.skipped;
    sum.still += counts.still;
    sum.failed += counts.failed;
    sum.events += counts.events;
    sum.reconnects += counts.reconnects;
    sum.lag = std::max(sum.lag, counts.lag);
  }
  std::vector<MetricFamily> out;
  const auto add = [&](const prometheus::Labels& more, double value) {
    auto& metric = out.back().metric.emplace_back(labelled(labels_, more));
    metric.gauge.value = value;
  };
  out.push_back(MetricFamily{"valora:streams", "Streams, by state.", MetricType::Gauge, {}});
  for (const auto& [state, count] : states) add({{"state", state_name(state)}}, count);
  out.push_back(MetricFamily{"valora:stream_frames",
                             "Frames of the streams that are there, by what became of them.",
                             MetricType::Gauge,
                             {}});
  add({{"outcome", "answered"}}, static_cast<double>(sum.answered));
  add({{"outcome", "dropped"}}, static_cast<double>(sum.frames.dropped));
  add({{"outcome", "skipped"}}, static_cast<double>(sum.skipped));
  add({{"outcome", "still"}}, static_cast<double>(sum.still));
  add({{"outcome", "failed"}}, static_cast<double>(sum.failed));
  out.push_back(
      MetricFamily{"valora:stream_events", "Events that have begun.", MetricType::Gauge, {}});
  add({}, static_cast<double>(sum.events));
  out.push_back(MetricFamily{"valora:stream_reconnects",
                             "Connections to sources that were made "
                             "anew.",
                             MetricType::Gauge,
                             {}});
  add({}, static_cast<double>(sum.reconnects));
  out.push_back(MetricFamily{"valora:stream_lag_seconds",
                             "Longest time from a stream's last answered frame to its answer.",
                             MetricType::Gauge,
                             {}});
  add({}, sum.lag);
  if (mqtt_) add_broker(out);
  return out;
}

void StreamCollector::add_broker(std::vector<MetricFamily>& out) const {
  const streams::MqttStatus broker = mqtt_->status();
  const streams::MqttCounts messages = mqtt_->counts();
  const auto add = [&](const char* name, const char* help,
                       const std::vector<std::pair<prometheus::Labels, double>>& values) {
    out.push_back(MetricFamily{name, help, MetricType::Gauge, {}});
    for (const auto& [more, value] : values)
      out.back().metric.emplace_back(labelled(labels_, more)).gauge.value = value;
  };
  add("valora:mqtt_connected", "1 while the MQTT broker is connected.",
      {{{}, broker.connected ? 1.0 : 0.0}});
  add("valora:mqtt_connections", "Connections to the MQTT broker since the start.",
      {{{}, static_cast<double>(broker.connections)}});
  add("valora:mqtt_messages", "Messages to the MQTT broker, by what became of them.",
      {{{{"outcome", "sent"}}, static_cast<double>(messages.sent)},
       {{{"outcome", "waiting"}}, static_cast<double>(messages.waiting)},
       {{{"outcome", "dropped"}}, static_cast<double>(messages.dropped)}});
}

}  // namespace valora::server
