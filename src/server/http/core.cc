#include "server/http/core.h"

#include "server/http/connection.h"

namespace valora::server {

bool ByteBudget::take(size_t bytes) {
  size_t held = held_.load();
  do {
    if (bytes > limit_ || held > limit_ - bytes) return false;
  } while (!held_.compare_exchange_weak(held, held + bytes));
  return true;
}

bool ClientBudgets::take(const std::string& client, size_t bytes) {
  const std::lock_guard lock(mutex_);
  size_t& held = held_[client];
  const bool fits = bytes <= limit_ && held <= limit_ - bytes;
  if (fits) held += bytes;
  if (held == 0) held_.erase(client);
  return fits;
}

void ClientBudgets::give_back(const std::string& client, size_t bytes) {
  if (bytes == 0) return;
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(client);
  if ((found->second -= bytes) == 0) held_.erase(found);
}

StrandPool::StrandPool(boost::asio::io_context& io, size_t count) : io_(io) {
  free_.reserve(count);
  while (free_.size() < count) free_.push_back(boost::asio::make_strand(io));
}

StrandPool::Strand StrandPool::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      Strand strand = std::move(free_.back());
      free_.pop_back();
      return strand;
    }
  }
  return boost::asio::make_strand(io_);
}

void StrandPool::give_back(const Strand& strand) noexcept {
  const std::lock_guard lock(mutex_);
  if (free_.size() < free_.capacity()) free_.push_back(strand);
}

size_t HttpCore::connection_count() const {
  std::lock_guard lock(mutex_);
  return connections_.size();
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
  std::vector<std::shared_ptr<Connection>> alive;  // outlives the lock, which ~Connection takes
  std::lock_guard lock(mutex_);
  for (const auto& [_, weak] : connections_)
    if (auto connection = weak.lock()) alive.push_back(std::move(connection));
  return alive;
}

void HttpCore::mark_idle(Places& place) noexcept {
  std::lock_guard lock(mutex_);
  waiting_.splice(waiting_.end(), place);
}

void HttpCore::end_waiting(Places& place, Places::iterator element) noexcept {
  std::lock_guard lock(mutex_);
  if (place.empty()) place.splice(place.end(), waiting_, element);
}

bool HttpCore::close_longest_idle() {
  std::shared_ptr<Connection> connection;
  {
    std::lock_guard lock(mutex_);
    while (!waiting_.empty() && !connection) {
      Connection* const longest = waiting_.front();
      longest->remove_from_idle(waiting_);
      const auto known = connections_.find(longest);
      if (known != connections_.end()) connection = known->second.lock();
    }
  }
  if (connection) connection->close_if_idle();
  return connection != nullptr;
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
