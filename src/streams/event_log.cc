#include "streams/event_log.h"

namespace valora::streams {

EventPtr EventLog::add(const std::string& type, const OrderedJson& fields) {
  const std::lock_guard lock(mutex_);
  OrderedJson whole{{"id", ++last_}, {"type", type}};
  whole.update(fields);
  events_.push_back(std::make_shared<const Event>(
      Event{last_, type, whole.dump(-1, ' ', false, OrderedJson::error_handler_t::replace)}));
  if (events_.size() > keeps_) events_.pop_front();
  for (const auto& [_, tell] : listeners_) tell(events_.back());
  return events_.back();
}

std::vector<EventPtr> EventLog::after(int64_t after, size_t most) const {
  const std::lock_guard lock(mutex_);
  std::vector<EventPtr> found;
  for (const EventPtr& event : events_)
    if (event->id > after && found.size() < most) found.push_back(event);
  return found;
}

int64_t EventLog::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

uint64_t EventLog::listen(int64_t after, Listener tell) {
  const std::lock_guard lock(mutex_);
  for (const EventPtr& event : events_)
    if (event->id > after) tell(event);
  if (closed_) {
    tell(nullptr);
    return 0;
  }
  listeners_[next_listener_] = std::move(tell);
  return next_listener_++;
}

void EventLog::close() {
  std::map<uint64_t, Listener> told;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    told.swap(listeners_);
  }
  for (const auto& [_, tell] : told) tell(nullptr);
}

void EventLog::forget(uint64_t listener) {
  const std::lock_guard lock(mutex_);
  listeners_.erase(listener);
}

}  // namespace valora::streams
