// A fixed number of threads that run jobs in order of arrival. For media and file work, not for
// compute.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace valora {

class WorkerPool {
 public:
  explicit WorkerPool(int threads);
  // Runs all posted jobs first. A job that should no longer run must check that itself.
  ~WorkerPool();
  void post(std::function<void()> job);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace valora
