#include "memory/thread_mover.h"

#include <algorithm>
#include <exception>

#include "base/fault.h"
#include "base/reserve.h"

namespace valora::memory {

ThreadMover::ThreadMover(Options options, Copy copy, std::function<void()> wake, const Clock& clock)
    : options_(options), copy_(std::move(copy)), notify_poller_(std::move(wake)), clock_(clock) {
  for (int i = 0; i < std::max(1, options_.threads); ++i) threads_.emplace_back([this] { work(); });
}

ThreadMover::~ThreadMover() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadMover::start(Move move) {
  {
    const std::lock_guard lock(mutex_);
    const Order order{move.urgency, move.id};
    reserve_more(results_, in_flight_ + 1 - results_.size());
    queue_.emplace(order, std::move(move));
    ++in_flight_;
  }
  wake_.notify_all();  // also wakes workers that delay a copy to stay within the bandwidth
}

std::vector<MoveResult> ThreadMover::poll() {
  const std::lock_guard lock(mutex_);
  if (results_.empty()) return {};
  std::vector<MoveResult> later;
  later.reserve(in_flight_ - results_.size());
  in_flight_ -= results_.size();
  return std::exchange(results_, std::move(later));
}

void ThreadMover::raise_priority(uint64_t id, Urgency urgency) {
  const std::lock_guard lock(mutex_);
  const auto it = std::ranges::find_if(queue_, [id](const auto& e) { return e.second.id == id; });
  if (it == queue_.end() || it->second.urgency <= urgency) return;
  auto waiting = queue_.extract(it);
  waiting.key().first = waiting.mapped().urgency = urgency;
  queue_.insert(std::move(waiting));
}

bool ThreadMover::cancel(uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto it = std::ranges::find_if(queue_, [id](const auto& e) { return e.second.id == id; });
  if (it == queue_.end()) return false;
  queue_.erase(it);
  --in_flight_;
  return true;
}

MoveResult ThreadMover::run(const Move& move) {
  const TimePoint begin = clock_.now();
  Status status;
  try {
    status = copy_(move);
  } catch (const std::exception& e) {
    status = fault("a copy between memory tiers failed", e);
  }
  if (options_.bandwidth > 0) {
    const Duration least = from_seconds(static_cast<double>(move.bytes) / options_.bandwidth);
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, least - (clock_.now() - begin), [this] { return stop_; });
  }
  return {move.id, std::move(status), seconds(clock_.now() - begin)};
}

void ThreadMover::work() {
  while (true) {
    Move move;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stop_ || !queue_.empty(); });
      if (stop_) return;
      move = std::move(queue_.begin()->second);
      queue_.erase(queue_.begin());
    }
    MoveResult result = run(move);
    {
      const std::lock_guard lock(mutex_);
      results_.push_back(std::move(result));
    }
    if (notify_poller_) notify_poller_();
  }
}

}  // namespace valora::memory
