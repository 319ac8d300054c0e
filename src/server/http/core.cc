#include "server/http/core.h"

namespace valora::server {

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

bool HttpCore::take_body_bytes(size_t bytes) {
  size_t held = body_bytes_.load();
  do {
    if (bytes > limits.max_total_body_bytes || held > limits.max_total_body_bytes - bytes)
      return false;
  } while (!body_bytes_.compare_exchange_weak(held, held + bytes));
  return true;
}

}  // namespace valora::server
