#include "server/http/rescue.h"

#include <chrono>
#include <exception>
#include <utility>

namespace valora::server {
namespace {

constexpr std::chrono::milliseconds kRetryPause{10};

bool rescued(Rescuable& object) {
  try {
    object.rescue();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

void Rescue::reserve_slot() {
  const std::lock_guard lock(mutex_);
  waiting_.reserve(expected_ + 1);
  ++expected_;
}

void Rescue::release_slot() noexcept {
  const std::lock_guard lock(mutex_);
  --expected_;
}

void Rescue::add(std::shared_ptr<Rescuable> object) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || waiting_.size() == waiting_.capacity()) return;
    waiting_.push_back(std::move(object));
  }
  changed_.notify_one();
}

void Rescue::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
  waiting_.clear();
}

void Rescue::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
    if (stopped_) return;
    std::shared_ptr<Rescuable> object = std::move(waiting_.back());
    waiting_.pop_back();
    lock.unlock();
    const bool done = rescued(*object);
    if (done) object.reset();  // this may be the last reference
    lock.lock();
    if (done) continue;
    // Nothing took its place, so it still counts as expected.
    if (waiting_.size() < waiting_.capacity()) waiting_.push_back(std::move(object));
    changed_.wait_for(lock, kRetryPause, [this] { return stopped_; });
  }
}

}  // namespace valora::server
