#include "streams/mqtt/mqtt_connection.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <utility>

#include "streams/mqtt/mqtt_session.h"
#include "streams/sleep.h"

namespace valora::streams {
namespace {

constexpr std::chrono::seconds kSteady{30};  // a connection that held this long is a good one

std::string random_client_id() {
  std::random_device random;
  return fmt::format("valora-{:08x}{:08x}", random(), random());
}

}  // namespace

MqttConnection::MqttConnection(MqttBroker broker, MqttOutbox& outbox, int wakes)
    : broker_(std::move(broker)),
      client_id_(random_client_id()),
      outbox_(outbox),
      wakes_(wakes),
      status_{.reason = "connecting"},
      thread_([this](const std::stop_token& stop) {
        // The session looks at the stop when it wakes.
        const std::stop_callback wake(stop, [this] {
          const uint64_t one = 1;
          [[maybe_unused]] const auto written = ::write(wakes_, &one, sizeof one);
        });
        run(stop);
      }) {
  outbox_.keep(broker_.status_topic(), "online");
}

MqttStatus MqttConnection::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void MqttConnection::set_connected() {
  spdlog::info("connected to the MQTT broker {}", broker_.address());
  const std::lock_guard lock(mutex_);
  status_.connected = true;
  status_.reason.clear();
  ++status_.connections;
}

void MqttConnection::set_lost(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (status_.connected || status_.reason != reason)  // the same fault is said once
    spdlog::warn("no connection to the MQTT broker {}: {}", broker_.address(), reason);
  status_.connected = false;
  status_.reason = reason;
}

void MqttConnection::run(const std::stop_token& stop) {
  std::chrono::milliseconds pause = kFirstPause;
  while (!stop.stop_requested()) {
    const auto began = std::chrono::steady_clock::now();
    std::string reason;
    {
      MqttSession session(broker_, client_id_, outbox_, wakes_, [this] { set_connected(); });
      reason = session.run(stop);
    }
    if (stop.stop_requested()) return;
    const bool held = status().connected && std::chrono::steady_clock::now() - began > kSteady;
    if (held) pause = kFirstPause;
    set_lost(reason);
    sleep_for(pause, stop);
    pause = std::min(pause * 2, kLongestPause);
  }
}

}  // namespace valora::streams
