// The thread on which the rows of batches are answered.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace valora::server {

// A thread that runs the work of all rows, in order.
class RowThread {
 public:
  RowThread();
  ~RowThread();  // drops the work that waits
  RowThread(const RowThread&) = delete;
  RowThread& operator=(const RowThread&) = delete;

  // The queue outlives the thread: events of the engine may come later, and are dropped.
  class Queue {
   public:
    void post(std::function<void()> work);

   private:
    friend class RowThread;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> work_;
    bool closed_ = false;
  };
  const std::shared_ptr<Queue>& queue() const { return queue_; }

 private:
  void run();

  const std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  std::thread thread_;
};

}  // namespace valora::server
