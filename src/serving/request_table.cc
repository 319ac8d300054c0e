#include "serving/request_table.h"

#include <algorithm>
#include <string>
#include <utility>

namespace valora::serving {

void RequestTable::close(Closed why) {
  const std::lock_guard lock(mutex_);
  closed_ = std::max(closed_, why);
}

Status RequestTable::add(const std::shared_ptr<ActiveRequest>& request) {
  // Under one lock, so that no request is accepted during a drain or beyond the limit.
  const std::lock_guard lock(mutex_);
  if (closed_ == Closed::kShuttingDown)
    return Error{ErrorCode::kUnavailable, "the server is shutting down", {}};
  if (closed_ == Closed::kFailed)
    return Error{ErrorCode::kUnavailable, "the engine has stopped after an internal fault", {}};
  if (queued_ >= max_waiting_)
    return Error{
        ErrorCode::kQueueFull,
        "the queue is full (" + std::to_string(max_waiting_) + " requests wait); try again later",
        {}};
  requests_.emplace(request->handle, request);
  ++queued_;
  ++preparing_;
  return {};
}

void RequestTable::take_back(RequestHandle handle) {
  const std::lock_guard lock(mutex_);
  requests_.erase(handle);
  --queued_;
  --preparing_;
}

void RequestTable::prepared() {
  const std::lock_guard lock(mutex_);
  --preparing_;
}

void RequestTable::ended(RequestHandle handle) {
  const std::lock_guard lock(mutex_);
  requests_.erase(handle);
}

std::shared_ptr<ActiveRequest> RequestTable::find(RequestHandle handle) const {
  const std::lock_guard lock(mutex_);
  const auto found = requests_.find(handle);
  return found == requests_.end() ? nullptr : found->second;
}

// Requires mutex_.
std::vector<std::shared_ptr<ActiveRequest>> RequestTable::list() const {
  std::vector<std::shared_ptr<ActiveRequest>> list;
  list.reserve(requests_.size());
  for (const auto& [handle, request] : requests_) list.push_back(request);
  return list;
}

std::vector<std::shared_ptr<ActiveRequest>> RequestTable::all() const {
  const std::lock_guard lock(mutex_);
  return list();
}

bool RequestTable::empty() const {
  const std::lock_guard lock(mutex_);
  return requests_.empty();
}

int RequestTable::preparing() const {
  const std::lock_guard lock(mutex_);
  return preparing_;
}

size_t RequestTable::handed_over() const {
  const std::lock_guard lock(mutex_);
  return requests_.size() - static_cast<size_t>(preparing_);
}

void RequestTable::when_empty(Done done) {
  const std::lock_guard lock(mutex_);
  drains_.push_back(std::move(done));
}

std::vector<RequestTable::Done> RequestTable::take_finished_drains() {
  const std::lock_guard lock(mutex_);
  return requests_.empty() ? std::exchange(drains_, {}) : std::vector<Done>();
}

RequestTable::OpenDrains RequestTable::take_open_drains() {
  const std::lock_guard lock(mutex_);
  if (drains_.empty()) return {};
  OpenDrains open{{}, list()};
  open.done.swap(drains_);
  return open;
}

}  // namespace valora::serving
