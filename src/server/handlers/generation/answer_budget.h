// Memory budget for all answers that are buffered until they are complete.
#pragma once

#include <cstddef>
#include <mutex>

namespace valora::server {

// Thread-safe.
class AnswerBudget {
 public:
  explicit AnswerBudget(size_t limit) : limit_(limit) {}

  // Takes `bytes` for an answer that already holds `held`. Returns false, and takes nothing, if the
  // answer would then hold more than remains for the others. So each of k large answers gets at
  // most 1/(k + 1) of the budget, and there is always room for small ones.
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
