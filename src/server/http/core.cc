#include "server/http/core.h"

namespace valora::server {

bool ByteBudget::take(size_t bytes) {
  size_t held = held_.load();
  do {
    if (bytes > limit_ || held > limit_ - bytes) return false;
  } while (!held_.compare_exchange_weak(held, held + bytes));
  return true;
}

bool HttpCore::full() const {
  std::lock_guard lock(mutex_);
  return connections_.size() >= limits.max_connections;
}

void HttpCore::add(const std::shared_ptr<Connection>& connection) {
  std::lock_guard lock(mutex_);
  connections_.emplace(connection.get(), connection);
}

void HttpCore::remove(Connection* connection) {
  std::lock_guard lock(mutex_);
  connections_.erase(connection);
}

std::vector<std::shared_ptr<Connection>> HttpCore::connections() const {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Connection>> alive;
  for (const auto& [_, weak] : connections_)
    if (auto connection = weak.lock()) alive.push_back(std::move(connection));
  return alive;
}

void HttpCore::exchange_began() {
  std::lock_guard lock(mutex_);
  ++active_exchanges_;
}

void HttpCore::exchange_ended() {
  std::function<void()> idle;
  {
    std::lock_guard lock(mutex_);
    if (--active_exchanges_ == 0) idle.swap(idle_);
  }
  if (idle) idle();
}

size_t HttpCore::active_exchanges() const {
  std::lock_guard lock(mutex_);
  return active_exchanges_;
}

void HttpCore::when_idle(std::function<void()> idle) {
  {
    std::lock_guard lock(mutex_);
    if (active_exchanges_ != 0) {
      idle_ = std::move(idle);
      return;
    }
  }
  idle();
}

}  // namespace valora::server
