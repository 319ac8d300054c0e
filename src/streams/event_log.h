// The last events of a stream, numbered from 1. Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/json/json.h"

namespace valora::streams {

struct Event {
  int64_t id = 0;
  std::string type;  // "answers", "start", "end", "state"
  std::string json;  // an object with its id
};
using EventPtr = std::shared_ptr<const Event>;

struct EventDraft {
  std::string type;
  OrderedJson fields;
};

class EventLog {
 public:
  // keeps: events; older ones are forgotten.
  explicit EventLog(size_t keeps) : keeps_(keeps) {}

  // Adds "id" and "type" to the fields. after() has all of them or none.
  std::vector<EventPtr> add(std::span<const EventDraft> drafts);
  // Kept events with ids above `after`, ascending, up to `most`.
  std::vector<EventPtr> after(int64_t after, size_t most) const;
  int64_t last() const;

  // Calls `tell` with the kept events above `after`, then with each new one on the thread that adds
  // it, until forget(), or close(), which it is told by a null event. It must not block, nor call
  // this log.
  using Listener = std::function<void(const EventPtr&)>;
  uint64_t listen(int64_t after, Listener tell);
  void forget(uint64_t listener);
  // No event follows.
  void close();

 private:
  const size_t keeps_;
  mutable std::mutex mutex_;
  std::deque<EventPtr> events_;
  int64_t last_ = 0;
  std::map<uint64_t, Listener> listeners_;
  uint64_t next_listener_ = 1;
  bool closed_ = false;
};

}  // namespace valora::streams
