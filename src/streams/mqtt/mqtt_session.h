// One connection to a broker, from its beginning to its loss. Used by one thread.
#pragma once

#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "streams/mqtt/mqtt_broker.h"
#include "streams/mqtt/mqtt_outbox.h"

struct mosquitto;

namespace valora::streams {

class MqttSession {
 public:
  // client_id: a broker ends the older one of two connections with the same id. connected: called
  // once the broker has accepted. wakes: an eventfd, readable when the outbox has more.
  MqttSession(const MqttBroker& broker, const std::string& client_id, MqttOutbox& outbox, int wakes,
              std::function<void()> connected);
  ~MqttSession();  // closes the connection, and gives the outbox back what was not taken
  MqttSession(const MqttSession&) = delete;
  MqttSession& operator=(const MqttSession&) = delete;

  // Publishes until the connection is lost, which the result explains, or a stop.
  std::string run(const std::stop_token& stop);

 private:
  static void on_connect(mosquitto*, void* self, int code);
  static void on_publish(mosquitto*, void* self, int id);

  std::string begin();
  std::string step(int milliseconds);
  std::string hand_over();
  void leave();

  const MqttBroker& broker_;
  MqttOutbox& outbox_;
  const int wakes_;
  const std::function<void()> told_connected_;
  mosquitto* client_;  // null: memory ran out
  bool connected_ = false;
  std::string refusal_;
  std::map<int, MqttMessage> under_way_;  // by the library's ids, which ascend
};

}  // namespace valora::streams
