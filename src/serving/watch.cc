#include "serving/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log/log.h"
#include "base/threads/parts_done.h"

namespace valora::serving {
namespace {

constexpr int kLooks = 10;  // per timeout
constexpr Duration kShortest = std::chrono::milliseconds(10), kLongest = std::chrono::seconds(1);

}  // namespace

void Watch::start(Duration timeout) {
  thread_ = std::thread([this, timeout] { run(timeout); });
}

void Watch::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Watch::drain(std::function<void()> done) {
  requests_.close(RequestTable::Closed::kShuttingDown);
  intake_.close_forms();
  requests_.when_empty(std::move(done));
  loop_.wake();
}

std::string Watch::standstill() const {
  const std::lock_guard lock(mutex_);
  return standstill_;
}

void Watch::set_standstill(std::string why) {
  const std::lock_guard lock(mutex_);
  standstill_ = std::move(why);
}

void Watch::run(Duration timeout) {
  const Duration period = std::clamp(timeout / kLooks, kShortest, kLongest);
  scheduler::ProgressWatch watch(timeout, clock_.now());
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, period, [this] { return stopping_; })) {
    lock.unlock();
    try {
      look(watch);
    } catch (const std::bad_alloc&) {  // the next look may succeed
    }
    lock.lock();
  }
}

void Watch::look(scheduler::ProgressWatch& watch) {
  const EngineLoop::Round round = loop_.last_round();
  scheduler::Progress progress = round.progress;
  progress.steps += parts_done();
  // Requests being prepared by workers have their own limits.
  const bool busy = loop_.healthy() && requests_.handed_over() > 0;
  const TimePoint now = clock_.now();
  switch (watch.look(progress, busy, now)) {
    case scheduler::ProgressWatch::Change::kNone: break;
    case scheduler::ProgressWatch::Change::kResumed:
      set_standstill({});
      spdlog::info("requests make progress again");
      break;
    case scheduler::ProgressWatch::Change::kStalled:
      ++stalls_;
      loop_.post_best_effort([](EngineCore& core) { core.release_claims(); });
  }
  if (!watch.stalled()) return;
  if (standstill_.empty()) {
    std::string why = describe(watch, round, now);
    spdlog::error("{}; waiting requests release what they hold", why);
    set_standstill(std::move(why));
  }
  end_drains();
}

std::string Watch::describe(const scheduler::ProgressWatch& watch, const EngineLoop::Round& round,
                            TimePoint now) const {
  std::string why =
      fmt::format("no request has made progress for {:.0f} s: ", seconds(now - watch.stepped_at()));
  // While there are requests, a thread that is not stuck iterates many times a second.
  if (now - round.ended_at >= watch.timeout())
    why += fmt::format("the engine thread has not returned from a step and holds {} requests",
                       requests_.handed_over());
  else
    why += fmt::format(
        "{} running, {} waiting ({} for adapters to load, {} for KV to load, {} for memory, {} for "
        "their turn); {} of these hold adapters or KV",
        round.running, round.waiting, round.waits.adapters, round.waits.kv, round.waits.room,
        round.waits.turn, round.waits.claims);
  return why + fmt::format("; {} of {} blocks are free", round.free_blocks, round.blocks);
}

// A drain must end even if the engine thread never gets to its requests: they are notified here,
// and cancelled for when it does.
void Watch::end_drains() {
  const RequestTable::OpenDrains open = requests_.take_open_drains();
  if (open.done.empty()) return;
  spdlog::error("the drain cancels {} stalled requests", open.requests.size());
  for (const auto& request : open.requests) {
    if (!request->cancelled.exchange(true)) request->sink->on_error(stalled_);
    intake_.cancel(request->handle);
  }
  for (const auto& done : open.done) done();
}

}  // namespace valora::serving
