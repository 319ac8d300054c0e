// Limits the choices waiting in the engine's queue. A request counts n times its prompts, so small
// requests cannot multiply past the limit.
#pragma once

#include <mutex>
#include <string>
#include <unordered_map>

namespace valora::server {

// Thread-safe.
class WaitingChoices {
 public:
  explicit WaitingChoices(int limit) : limit_(limit) {}

  // Returns false if the queue is full. A request is always accepted if nothing else waits. A
  // client with nothing waiting may exceed the limit up to twice, so that no single client can fill
  // the queue for everyone.
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
  std::unordered_map<std::string, int> by_client_;  // only clients with waiting choices
};

}  // namespace valora::server
