// A queue between threads whose writers never wait: beyond its bounds the oldest entries are
// dropped and counted. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

namespace valora::streams {

template <typename T>
class BoundedQueue {
 public:
  // most: entries; most_bytes: of all entries together, as push() is told. The newest entry is kept
  // however large it is.
  explicit BoundedQueue(size_t most, size_t most_bytes = std::numeric_limits<size_t>::max())
      : most_(most), most_bytes_(most_bytes) {}

  void push(T value, size_t bytes = 0) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({std::move(value), bytes});
    bytes_ += bytes;
    while (waiting_.size() > 1 && (waiting_.size() > most_ || bytes_ > most_bytes_)) drop_oldest();
    changed_.notify_all();
  }

  // An entry that was taken comes first again, unless newer ones have filled the queue.
  void put_back(T value, size_t bytes = 0) {
    const std::lock_guard lock(mutex_);
    waiting_.push_front({std::move(value), bytes});
    bytes_ += bytes;
    if (waiting_.size() > most_ || bytes_ > most_bytes_) drop_oldest();
    changed_.notify_all();
  }

  // The oldest entry, once there is one; empty at a stop.
  std::optional<T> wait_and_take(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [&] { return !waiting_.empty(); });
    return stop.stop_requested() ? std::nullopt : pop();
  }

  // The oldest entry; empty if there is none.
  std::optional<T> take() {
    const std::lock_guard lock(mutex_);
    return pop();
  }

  size_t waiting() const {
    const std::lock_guard lock(mutex_);
    return waiting_.size();
  }

  int64_t dropped() const {
    const std::lock_guard lock(mutex_);
    return dropped_;
  }

 private:
  struct Entry {
    T value;
    size_t bytes;
  };

  void drop_oldest() {
    bytes_ -= waiting_.front().bytes;
    waiting_.pop_front();
    ++dropped_;
  }

  std::optional<T> pop() {
    if (waiting_.empty()) return std::nullopt;
    Entry oldest = std::move(waiting_.front());
    waiting_.pop_front();
    bytes_ -= oldest.bytes;
    return std::move(oldest.value);
  }

  const size_t most_, most_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Entry> waiting_;
  size_t bytes_ = 0;
  int64_t dropped_ = 0;
};

}  // namespace valora::streams
