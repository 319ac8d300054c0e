// The watch over a ServingEngine's progress, on a thread of its own: the engine thread itself may
// be what stands still.
#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/parts_done.h"
#include "serving/serving_engine.h"

namespace valora::serving {
namespace {

constexpr int kLooks = 10;  // within the timeout
constexpr Duration kShortest = std::chrono::milliseconds(10), kLongest = std::chrono::seconds(1);

}  // namespace

std::string ServingEngine::standstill() const {
  const std::lock_guard lock(mutex_);
  return standstill_;
}

void ServingEngine::watch_progress(Duration timeout) {
  watcher_ = std::thread([this, timeout] { watch(timeout); });
}

void ServingEngine::watch(Duration timeout) {
  const Duration period = std::clamp(timeout / kLooks, kShortest, kLongest);
  scheduler::ProgressWatch watch(timeout, clock_.now());
  std::unique_lock lock(mutex_);
  while (!watch_wake_.wait_for(lock, period, [this] { return watch_ends_; })) {
    try {
      look(watch, lock);
    } catch (const std::bad_alloc&) {  // the next look may find memory
      if (!lock.owns_lock()) lock.lock();
    }
  }
}

void ServingEngine::look(scheduler::ProgressWatch& watch, std::unique_lock<std::mutex>& lock) {
  scheduler::Progress now = progress_;
  now.steps += parts_done();
  // Those that workers prepare have limits of their own.
  const bool busy = healthy_ && requests_.size() > static_cast<size_t>(preparing_);
  const TimePoint at = clock_.now();
  switch (watch.look(now, busy, at)) {
    case scheduler::ProgressWatch::Change::kNone: break;
    case scheduler::ProgressWatch::Change::kResumed:
      standstill_.clear();
      spdlog::info("no request stands still any more");
      break;
    case scheduler::ProgressWatch::Change::kStalled:
      ++stats_.stalls;
      lock.unlock();
      suggest([](EngineCore& core) { core.give_back_claims(); });
      lock.lock();
  }
  if (watch.stalled() && standstill_.empty()) note_stall(watch, at);
  if (watch.stalled() && !drained_.empty()) end_drain(lock);
}

// Under mutex_.
void ServingEngine::note_stall(const scheduler::ProgressWatch& watch, TimePoint now) {
  std::string why =
      fmt::format("no request has got on for {:.0f} s: ", seconds(now - watch.stepped_at()));
  // While there are requests, a thread that is not stuck goes round many times a second.
  if (now - round_at_ >= watch.timeout())
    why += fmt::format("the engine thread has not come back from a step, and has {} requests",
                       requests_.size() - static_cast<size_t>(preparing_));
  else
    why += fmt::format(
        "{} run, {} wait ({} for adapters on their way, {} for KV on its way, {} for room, {} for "
        "their turn); {} of these hold adapters or KV",
        stats_.running, stats_.waiting, waits_.adapters, waits_.kv, waits_.room, waits_.turn,
        waits_.claims);
  why += fmt::format("; {} of {} blocks are free", stats_.memory.free, stats_.memory.total);
  spdlog::error("{}; waiting requests give back what they hold", why);
  standstill_ = std::move(why);
}

// A drain must end, and the engine thread may never come to its requests: they are told here, and
// are cancelled for when it does.
void ServingEngine::end_drain(std::unique_lock<std::mutex>& lock) {
  std::vector<std::shared_ptr<ActiveRequest>> open;
  open.reserve(requests_.size());
  for (const auto& [handle, request] : requests_) open.push_back(request);
  std::vector<std::function<void()>> drained;
  drained.swap(drained_);
  lock.unlock();
  spdlog::error("the drain ends {} requests that stand still", open.size());
  for (const auto& request : open) {
    if (!request->cancelled.exchange(true)) request->sink->on_error(stood_still_);
    cancel(request->handle);
  }
  for (const auto& done : drained) done();
  lock.lock();
}

void ServingEngine::end_watch() {
  {
    const std::lock_guard lock(mutex_);
    watch_ends_ = true;
  }
  watch_wake_.notify_all();
  if (watcher_.joinable()) watcher_.join();
}

}  // namespace valora::serving
