// Threads that handle requests: they parse bodies, check them and submit them. Short and long
// requests have separate threads, so that a short one never waits for a long one; on each, clients
// take turns. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "base/threads/fair_pool.h"

namespace valora::server {

class HandlerPool {
 public:
  // threads: number for short requests, and the same number again for long ones.
  explicit HandlerPool(int threads);
  ~HandlerPool();

  // `job` must not throw. A job posted after finish() is destroyed without running.
  void post(const std::string& client, size_t body_bytes, std::function<void()> job);
  // Runs all posted jobs first.
  void finish();

 private:
  std::mutex mutex_;
  std::unique_ptr<FairPool> short_, long_;  // null after finish()
};

}  // namespace valora::server
