// How many choices wait in the engine's queue: a request counts n times its prompts, so that small
// requests can't multiply past the limit of waiting requests.
#pragma once

#include <mutex>
#include <string>
#include <unordered_map>

namespace valora::server {

// Thread-safe.
class WaitingChoices {
 public:
  explicit WaitingChoices(int limit) : limit_(limit) {}

  // False: the queue is full. A request that finds no other waiting is always taken. A client of
  // whom nothing waits finds room up to twice the limit, so that one client cannot fill the queue
  // for all.
  bool take(const std::string& client, int choices) {
    const std::lock_guard lock(mutex_);
    const auto known = by_client_.find(client);
    const int limit = known == by_client_.end() && limit_ <= kMostDoubled ? 2 * limit_ : limit_;
    if (waiting_ > 0 && choices > limit - waiting_) return false;
    if (known == by_client_.end())
      by_client_.emplace(client, choices);
    else
      known->second += choices;
    waiting_ += choices;
    return true;
  }
  void give_back(const std::string& client, int choices) {
    if (choices == 0) return;
    const std::lock_guard lock(mutex_);
    const auto known = by_client_.find(client);
    if ((known->second -= choices) == 0) by_client_.erase(known);
    waiting_ -= choices;
  }

 private:
  static constexpr int kMostDoubled = 1 << 30;

  const int limit_;
  std::mutex mutex_;
  int waiting_ = 0;
  std::unordered_map<std::string, int> by_client_;  // those of whom choices wait
};

}  // namespace valora::server
