#include "memory/simulated_mover.h"

#include <algorithm>

namespace valora::memory {

void SimulatedMover::start(Move move) {
  queue_.push_back(std::move(move));
  if (!current_) begin_next(clock_.now());
}

void SimulatedMover::begin_next(TimePoint now) {
  current_.reset();
  const auto next = std::ranges::min_element(queue_, {}, &Move::urgency);
  if (next == queue_.end()) return;
  current_ = std::move(*next);
  queue_.erase(next);
  outcome_ = fate_ ? fate_(*current_) : Outcome{};
  const double bandwidth =
      current_->kind == MoveKind::kLoadAdapter ? cost_.load_bandwidth : cost_.swap_bandwidth;
  begin_ = now;
  end_ = now + from_seconds(outcome_.slowdown *
                            (cost_.latency + static_cast<double>(current_->bytes) / bandwidth));
}

std::vector<MoveResult> SimulatedMover::poll() {
  std::vector<MoveResult> results;
  results.reserve(queue_.size() + 1);
  while (current_ && end_ <= clock_.now()) {
    if (outcome_.status.ok() && on_copied) on_copied(*current_);
    results.push_back({current_->id, outcome_.status, seconds(end_ - begin_)});
    begin_next(end_);
  }
  return results;
}

void SimulatedMover::raise_priority(uint64_t id, Urgency urgency) {
  for (Move& move : queue_)
    if (move.id == id) move.urgency = std::min(move.urgency, urgency);
}

bool SimulatedMover::cancel(uint64_t id) {
  return std::erase_if(queue_, [id](const Move& move) { return move.id == id; }) > 0;
}

std::optional<TimePoint> SimulatedMover::next_end() {
  return current_ ? std::optional(end_) : std::nullopt;
}

}  // namespace valora::memory
