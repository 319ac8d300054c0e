// Checks that a schedule makes progress: while there are requests, a step runs or a request ends,
// unless copies are in progress. Copies must lead to a step eventually, so their number is bounded.
#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "scheduler/scheduler.h"

namespace valora::scheduler::testing {

class ProgressCheck {
 public:
  // quiet: consecutive steps that may do nothing although no copy is in progress.
  ProgressCheck(const Scheduler& scheduler, int quiet)
      : scheduler_(scheduler), idle_limit_(quiet) {}

  // Call after each step. progress: the step ran, prepared media, or ended a request. Returns an
  // empty string, or a description of the stall.
  std::string after_step(bool progress) {
    const memory::PoolStats stats = scheduler_.pool().stats();
    const uint64_t moves = stats.loads.moves + stats.reads.moves + stats.writes.moves;
    if (progress || scheduler_.idle()) {
      idle_steps_ = 0;
      moves_before_ = moves;
      return {};
    }
    idle_steps_ = scheduler_.pool().moving() ? 0 : idle_steps_ + 1;
    const uint64_t ended = moves - moves_before_;
    if (idle_steps_ <= idle_limit_ && ended <= max_moves()) return {};
    return fmt::format("{} steps did nothing, {} copies ended meanwhile; {} requests run, {} wait",
                       idle_steps_, ended, scheduler_.stats().running, scheduler_.stats().waiting);
  }

 private:
  // Each block may leave once, and come in once for the first request.
  uint64_t max_moves() const { return 2 * uint64_t(scheduler_.pool().total_blocks()) + 8; }

  const Scheduler& scheduler_;
  const int idle_limit_;
  int idle_steps_ = 0;
  uint64_t moves_before_ = 0;
};

}  // namespace valora::scheduler::testing
