// How many choices wait in the engine's queue: a request counts n times its prompts, so that small
// requests can't multiply past the limit of waiting requests.
#pragma once

#include <mutex>

namespace valora::server {

// Thread-safe.
class WaitingChoices {
 public:
  explicit WaitingChoices(int limit) : limit_(limit) {}

  // False: the queue is full. A request that finds no other waiting is always taken.
  bool take(int choices) {
    const std::lock_guard lock(mutex_);
    if (waiting_ > 0 && choices > limit_ - waiting_) return false;
    waiting_ += choices;
    return true;
  }
  void give_back(int choices) {
    const std::lock_guard lock(mutex_);
    waiting_ -= choices;
  }

 private:
  const int limit_;
  std::mutex mutex_;
  int waiting_ = 0;
};

}  // namespace valora::server
