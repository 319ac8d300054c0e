#include "base/threads/step_watch.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/log/log.h"

namespace valora {

StepWatch::StepWatch(Communicator& communicator, const Settings& settings)
    : communicator_(communicator), settings_(settings), thread_([this] { work(); }) {}

StepWatch::~StepWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

// The thread polls, so that watching a step does not slow it down.
void StepWatch::begin() {
  const std::lock_guard lock(mutex_);
  begun_ = real_clock().now();
}

void StepWatch::end() {
  const std::lock_guard lock(mutex_);
  begun_.reset();
}

void StepWatch::work() {
  const Duration nap = std::min<Duration>(settings_.limit / 4, std::chrono::milliseconds(500));
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    changed_.wait_for(lock, nap);
    if (!begun_) continue;
    const Duration taken = real_clock().now() - *begun_;
    if (taken > settings_.limit + settings_.patience) break;
    if (taken <= settings_.limit || communicator_.failure()) continue;
    lock.unlock();  // ending the collectives may end the step, and end() locks
    communicator_.fail(
        0, "a step did not end on the devices within " +
               std::to_string(std::chrono::ceil<std::chrono::seconds>(settings_.limit).count()) +
               " s");
    lock.lock();
  }
  if (stopped_) return;
  spdlog::critical("{}, and the step has not ended since: the process ends",
                   communicator_.failure().value_or("a rank failed"));
  spdlog::shutdown();
  std::_Exit(EXIT_FAILURE);
}

}  // namespace valora
