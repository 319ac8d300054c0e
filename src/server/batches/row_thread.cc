#include "server/batches/row_thread.h"

#include <spdlog/spdlog.h>

#include <exception>
#include <utility>

namespace valora::server {

RowThread::RowThread() : thread_([this] { run(); }) {}

RowThread::~RowThread() {
  std::deque<std::function<void()>> dropped;
  {
    const std::lock_guard lock(queue_->mutex_);
    queue_->closed_ = true;
    dropped.swap(queue_->work_);
    queue_->changed_.notify_all();
  }
  thread_.join();
}

void RowThread::Queue::post(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  work_.push_back(std::move(work));
  changed_.notify_one();
}

void RowThread::run() {
  std::unique_lock lock(queue_->mutex_);
  while (true) {
    queue_->changed_.wait(lock, [&] { return queue_->closed_ || !queue_->work_.empty(); });
    if (queue_->closed_) return;
    auto work = std::move(queue_->work_.front());
    queue_->work_.pop_front();
    lock.unlock();
    try {
      work();
    } catch (const std::exception& e) {
      spdlog::error("while answering a row of a batch: {}", e.what());
    }
    work = nullptr;
    lock.lock();
  }
}

}  // namespace valora::server
