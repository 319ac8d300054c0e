// Checks that a schedule makes progress: while there are requests, a step runs or a request ends,
// unless copies run. Copies must lead to a step as well, so their number is bounded.
#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "scheduler/scheduler.h"

namespace valora::scheduler::testing {

class ProgressCheck {
 public:
  // quiet: steps in turn that may do nothing though no copy is under way.
  ProgressCheck(const Scheduler& scheduler, int quiet) : scheduler_(scheduler), quiet_(quiet) {}

  // Call after each step. progress: it ran, prepared media, or a request ended. Returns an empty
  // string, or what stands still.
  std::string after_step(bool progress) {
    const memory::PoolStats stats = scheduler_.pool().stats();
    const uint64_t moves = stats.loads.moves + stats.reads.moves + stats.writes.moves;
    if (progress || scheduler_.idle()) {
      quiet_steps_ = 0;
      moves_before_ = moves;
      return {};
    }
    quiet_steps_ = scheduler_.pool().moving() ? 0 : quiet_steps_ + 1;
    const uint64_t ended = moves - moves_before_;
    if (quiet_steps_ <= quiet_ && ended <= most_moves()) return {};
    return fmt::format("{} steps did nothing, {} copies ended meanwhile; {} requests run, {} wait",
                       quiet_steps_, ended, scheduler_.stats().running, scheduler_.stats().waiting);
  }

 private:
  // Each block leaves once, and each comes in once for the request that is first.
  uint64_t most_moves() const { return 2 * uint64_t(scheduler_.pool().total_blocks()) + 8; }

  const Scheduler& scheduler_;
  const int quiet_;
  int quiet_steps_ = 0;
  uint64_t moves_before_ = 0;
};

}  // namespace valora::scheduler::testing
