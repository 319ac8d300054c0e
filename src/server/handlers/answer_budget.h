// Memory of all answers that are kept until they are complete.
#pragma once

#include <cstddef>
#include <mutex>

namespace valora::server {

// Thread-safe.
class AnswerBudget {
 public:
  explicit AnswerBudget(size_t limit) : limit_(limit) {}

  // For an answer that has `held` bytes already. False, and nothing is counted, if it would have
  // more than is left to others: so k large answers get a part of k + 1 each, and small ones always
  // find room.
  bool take(size_t held, size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes > limit_ - taken_ || held + bytes > limit_ - taken_ - bytes) return false;
    taken_ += bytes;
    return true;
  }
  void give_back(size_t bytes) {
    const std::lock_guard lock(mutex_);
    taken_ -= bytes;
  }

 private:
  const size_t limit_;
  std::mutex mutex_;
  size_t taken_ = 0;
};

}  // namespace valora::server
