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
  explicit MqttOutput(MqttBroker broker);
  ~MqttOutput();  // leaves the broker
  MqttOutput(const MqttOutput&) = delete;
  MqttOutput& operator=(const MqttOutput&) = delete;

  // Once the streams of the folder were added: they are published before "online".
  void connect();

  StreamOutput& streams() { return publisher_; }
  std::string topic_of(const std::string& stream_id) const {
    return publisher_.topic_of(stream_id);
  }
  MqttStatus status() const {
    return connection_ ? connection_->status() : MqttStatus{.reason = "connecting"};
  }
  MqttCounts counts() const { return outbox_.counts(); }

 private:
  const int wakes_;  // an eventfd
  MqttOutbox outbox_;
  MqttPublisher publisher_;
  std::unique_ptr<MqttConnection> connection_;
  const MqttBroker broker_;
};

}  // namespace valora::streams
