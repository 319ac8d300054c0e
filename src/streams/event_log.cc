#include "streams/event_log.h"

namespace valora::streams {

std::vector<EventPtr> EventLog::add(std::span<const EventDraft> drafts) {
  const std::lock_guard lock(mutex_);
  std::vector<EventPtr> added;
  for (const EventDraft& draft : drafts) {
    OrderedJson whole{{"id", ++last_}, {"type", draft.type}};
    whole.update(draft.fields);
    added.push_back(std::make_shared<const Event>(Event{
        last_, draft.type, whole.dump(-1, ' ', false, OrderedJson::error_handler_t::replace)}));
    events_.push_back(added.back());
    if (events_.size() > keeps_) events_.pop_front();
    for (const auto& [_, tell] : listeners_) tell(added.back());
  }
  return added;
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
