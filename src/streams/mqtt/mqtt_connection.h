// The one connection of a server to its broker, on a thread of its own.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "streams/mqtt/mqtt_broker.h"
#include "streams/mqtt/mqtt_outbox.h"

namespace valora::streams {

struct MqttStatus {
  bool connected = false;
  std::string reason;       // why not; without secrets
  int64_t connections = 0;  // since the start
};

// Publishes an outbox at QoS 1. The retained topic PREFIX/status is "online" meanwhile, and
// "offline" afterwards, which the broker says itself if the connection is lost. A lost connection,
// or one that cannot be made, is made anew after growing pauses.
class MqttConnection {
 public:
  static constexpr std::chrono::milliseconds kFirstPause{1000}, kLongestPause{60'000};

  // `outbox` must outlive this object. wakes: an eventfd that the outbox's wake() writes.
  MqttConnection(MqttBroker broker, MqttOutbox& outbox, int wakes);
  // Says "offline", after what is under way if the broker takes it within a second.
  ~MqttConnection() = default;

  MqttStatus status() const;

 private:
  void run(const std::stop_token& stop);
  void set_connected();
  void set_lost(const std::string& reason);

  const MqttBroker broker_;
  // The same on every connection: otherwise the broker, which may notice the loss of the one before
  // late, would then say "offline" in its name.
  const std::string client_id_;
  MqttOutbox& outbox_;
  const int wakes_;
  mutable std::mutex mutex_;
  MqttStatus status_;
  std::jthread thread_;
};

}  // namespace valora::streams
