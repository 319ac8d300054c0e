// Watches a ServingEngine's progress on a separate thread, because the engine thread itself may be
// stuck.
#include <fmt/format.h>

#include <algorithm>

#include "base/log/log.h"
#include "base/threads/parts_done.h"
#include "serving/serving_engine.h"

namespace valora::serving {
namespace {

constexpr int kLooks = 10;  // per timeout
constexpr Duration kShortest = std::chrono::milliseconds(10), kLongest = std::chrono::seconds(1);

}  // namespace

std::string ServingEngine::standstill() const {
  const std::lock_guard lock(mutex_);
  return standstill_;
}

void ServingEngine::start_watchdog(Duration timeout) {
  watchdog_thread_ = std::thread([this, timeout] { watch(timeout); });
}

void ServingEngine::watch(Duration timeout) {
  const Duration period = std::clamp(timeout / kLooks, kShortest, kLongest);
  scheduler::ProgressWatch watch(timeout, clock_.now());
  std::unique_lock lock(mutex_);
  while (!watchdog_wake_.wait_for(lock, period, [this] { return watchdog_stopping_; })) {
    try {
      look(watch, lock);
    } catch (const std::bad_alloc&) {  // the next look may succeed
      if (!lock.owns_lock()) lock.lock();
    }
  }
}

void ServingEngine::look(scheduler::ProgressWatch& watch, std::unique_lock<std::mutex>& lock) {
  scheduler::Progress now = progress_;
  now.steps += parts_done();
  // Requests being prepared by workers have their own limits.
  const bool busy = healthy_ && requests_.size() > static_cast<size_t>(preparing_);
  const TimePoint at = clock_.now();
  switch (watch.look(now, busy, at)) {
    case scheduler::ProgressWatch::Change::kNone: break;
    case scheduler::ProgressWatch::Change::kResumed:
      standstill_.clear();
      spdlog::info("requests make progress again");
      break;
    case scheduler::ProgressWatch::Change::kStalled:
      ++stats_.stalls;
      lock.unlock();
      post_best_effort([](EngineCore& core) { core.release_claims(); });
      lock.lock();
  }
  if (watch.stalled() && standstill_.empty()) record_stall(watch, at);
  if (watch.stalled() && !drained_.empty()) end_drain(lock);
}

// Requires mutex_.
void ServingEngine::record_stall(const scheduler::ProgressWatch& watch, TimePoint now) {
  std::string why =
      fmt::format("no request has made progress for {:.0f} s: ", seconds(now - watch.stepped_at()));
  // While there are requests, a thread that is not stuck iterates many times a second.
  if (now - round_at_ >= watch.timeout())
    why += fmt::format("the engine thread has not returned from a step and holds {} requests",
                       requests_.size() - static_cast<size_t>(preparing_));
  else
    why += fmt::format(
        "{} running, {} waiting ({} for adapters to load, {} for KV to load, {} for memory, {} for "
        "their turn); {} of these hold adapters or KV",
        stats_.running, stats_.waiting, waits_.adapters, waits_.kv, waits_.room, waits_.turn,
        waits_.claims);
  why += fmt::format("; {} of {} blocks are free", stats_.memory.free, stats_.memory.total);
  spdlog::error("{}; waiting requests release what they hold", why);
  standstill_ = std::move(why);
}

// A drain must end even if the engine thread never gets to its requests: they are notified here,
// and cancelled for when it does.
void ServingEngine::end_drain(std::unique_lock<std::mutex>& lock) {
  std::vector<std::shared_ptr<ActiveRequest>> open;
  open.reserve(requests_.size());
  for (const auto& [handle, request] : requests_) open.push_back(request);
  std::vector<std::function<void()>> drained;
  drained.swap(drained_);
  lock.unlock();
  spdlog::error("the drain cancels {} stalled requests", open.size());
  for (const auto& request : open) {
    if (!request->cancelled.exchange(true)) request->sink->on_error(stalled_error_);
    cancel(request->handle);
  }
  for (const auto& done : drained) done();
  lock.lock();
}

void ServingEngine::stop_watchdog() {
  {
    const std::lock_guard lock(mutex_);
    watchdog_stopping_ = true;
  }
  watchdog_wake_.notify_all();
  if (watchdog_thread_.joinable()) watchdog_thread_.join();
}

}  // namespace valora::serving
