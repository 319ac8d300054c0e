// The threads that handle requests: parse their bodies, check them, submit them. Short requests and
// long ones have threads of their own, so that a short request never waits for a long one, and on
// each, clients take turns. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "base/fair_pool.h"

namespace valora::server {

class HandlerPool {
 public:
  // threads: for short requests, and as many for long ones.
  explicit HandlerPool(int threads);
  ~HandlerPool();

  // `job` must not throw. After finish(), it is destroyed and not run.
  void post(const std::string& client, size_t body_bytes, std::function<void()> job);
  // Runs all posted jobs first.
  void finish();

 private:
  std::mutex mutex_;
  std::unique_ptr<FairPool> short_, long_;  // null after finish()
};

}  // namespace valora::server
