// What is to be published, between streams, which never wait, and the connection to a broker, which
// may be lost at any time. Thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "streams/bounded_queue.h"

namespace valora::streams {

struct MqttMessage {
  std::string topic, payload;
  bool retain = false;
  bool standing = false;  // of keep() and clear()
  int losses = 0;         // connections that were lost before the broker took it
};

struct MqttCounts {
  int64_t sent = 0;     // that the broker took
  int64_t dropped = 0;  // lost for good
  size_t waiting = 0;
};

class MqttOutbox {
 public:
  static constexpr size_t kMostWaiting = 1000, kMostWaitingBytes = size_t{16} << 20;
  static constexpr size_t kMostCleared = 4096;  // topics that no broker was told to forget yet
  static constexpr int kMostLosses = 3;         // of a message; then it is dropped

  // wake: called whenever there is something to publish, on any thread. It must not wait, nor call
  // this object.
  explicit MqttOutbox(std::function<void()> wake = [] {}) : wake_(std::move(wake)) {}

  // A retained topic: its last payload is published, and published again on every connection, since
  // a broker may have forgotten it. Earlier ones that were not published yet are passed over.
  void keep(const std::string& topic, std::string payload);
  // Makes the broker forget a retained topic.
  void clear(const std::string& topic);
  // Published once. The oldest ones are dropped if more wait than may.
  void send(std::string topic, std::string payload, bool retain = false);

  // ---- for the connection ----

  // All retained topics are to be published again, `last` as the last one.
  void connected(const std::string& last = {});
  // The next message: retained topics come first.
  std::optional<MqttMessage> take();
  // The broker took it.
  void taken(const MqttMessage& message);
  // It can never be published.
  void refused();
  // The connection was lost before the broker took these, the oldest first.
  void lost(std::vector<MqttMessage> messages);

  MqttCounts counts() const;

 private:
  struct Standing {
    std::string payload;  // empty: to be forgotten
    bool waits = false;   // in waiting_topics_
  };

  void put(const std::string& topic, std::string payload);

  const std::function<void()> wake_;
  BoundedQueue<MqttMessage> queue_{kMostWaiting, kMostWaitingBytes};
  mutable std::mutex mutex_;
  std::map<std::string, Standing> standing_;
  std::deque<std::string> waiting_topics_;
  size_t cleared_ = 0;  // entries of standing_ without a payload
  int64_t sent_ = 0, dropped_ = 0;
};

}  // namespace valora::streams
