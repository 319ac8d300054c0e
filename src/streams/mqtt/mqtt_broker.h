// Where the broker of a server is, and the names of what is published there (docs/streams.md).
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace valora::streams {

// As users give it.
struct MqttSettings {
  std::string url;            // "mqtt[s]://[USER[:PASSWORD]@]HOST[:PORT]"; empty: no broker
  std::string password_file;  // its first line; wins over the others
  std::string password;       // from the environment, if the URL has none
  std::string ca_file;  // PEM, authorities of the broker's certificate; empty: the system's ones
  std::string topic_prefix = "valora";
  std::string discovery_prefix = "homeassistant";  // empty: no discovery
};

struct MqttBroker {
  std::string host;
  uint16_t port = 1883;
  bool tls = false;
  std::string user, password;  // empty: none
  std::string ca_file;
  std::string topic_prefix, discovery_prefix;

  std::string status_topic() const { return topic_prefix + "/status"; }
  std::string address() const;  // for people: "HOST:PORT"
};

// kInvalidArgument, kNotFound: a setting is wrong, or the file cannot be read. No message has a
// password.
Result<MqttBroker> read_mqtt_settings(const MqttSettings& settings);

}  // namespace valora::streams
