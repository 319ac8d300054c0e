// A mover in simulated time: a single link that copies one move at a time, most urgent first.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "memory/mover.h"

namespace valora::memory {

struct LinkCost {
  double latency = 0;           // seconds per move
  double load_bandwidth = 1e9;  // bytes/s, for adapters
  double swap_bandwidth = 1e9;  // bytes/s, for KV blocks in either direction
};

class SimulatedMover final : public Mover {
 public:
  // The outcome of a move and a factor on its duration, for example to test faults.
  struct Outcome {
    Status status;
    double slowdown = 1;
  };
  using Fate = std::function<Outcome(const Move&)>;

  SimulatedMover(const LinkCost& cost, const Clock& clock, Fate fate = {})
      : cost_(cost), clock_(clock), fate_(std::move(fate)) {}

  void start(Move move) override;
  std::vector<MoveResult> poll() override;
  void raise_priority(uint64_t id, Urgency urgency) override;
  bool cancel(uint64_t id) override;

  // When the current move ends; nullopt if there is none.
  std::optional<TimePoint> next_end();
  // Called for each successful move before poll() returns its result.
  std::function<void(const Move&)> on_copied;

 private:
  void begin_next(TimePoint now);

  LinkCost cost_;
  const Clock& clock_;
  Fate fate_;
  std::vector<Move> queue_;  // in order of start()
  std::optional<Move> current_;
  Outcome outcome_;
  TimePoint begin_{}, end_{};
};

}  // namespace valora::memory
