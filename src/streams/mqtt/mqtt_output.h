// Publishes a server's streams to an MQTT broker (docs/streams.md): the topics, what waits, and the
// connection, put together. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "streams/mqtt/mqtt_connection.h"
#include "streams/mqtt/mqtt_publisher.h"

namespace valora::streams {

class MqttOutput {
 public:
  explicit MqttOutput(const MqttBroker& broker);
  ~MqttOutput();  // leaves the broker
  MqttOutput(const MqttOutput&) = delete;
  MqttOutput& operator=(const MqttOutput&) = delete;

  StreamOutput& streams() { return publisher_; }
  std::string topic_of(const std::string& stream_id) const {
    return publisher_.topic_of(stream_id);
  }
  MqttStatus status() const { return connection_->status(); }
  MqttCounts counts() const { return outbox_.counts(); }

 private:
  const int wakes_;  // an eventfd
  MqttOutbox outbox_;
  MqttPublisher publisher_;
  std::unique_ptr<MqttConnection> connection_;
};

}  // namespace valora::streams
