// The number of libtorch's compute threads, fewer while other programs use the cores
// (base/thread_share.h).
#pragma once

#include "base/clock.h"
#include "base/core_load.h"
#include "base/thread_share.h"

namespace valora::ops {

class ComputeThreads {
 public:
  // Made by the thread that computes; its number of threads is the most.
  explicit ComputeThreads(const Clock& clock = real_clock(), CoreLoadFiles files = {});
  ~ComputeThreads();  // restores the number of threads; on the same thread
  ComputeThreads(const ComputeThreads&) = delete;
  ComputeThreads& operator=(const ComputeThreads&) = delete;

  // Called by the thread that computes, between its launches. Looks at the cores every quarter of a
  // second, in some 0.1 ms; otherwise takes the time of reading a clock. Each look at which the
  // number of threads falls is a warning in the log, at most one per minute.
  void adjust();

 private:
  void apply(int threads);

  const Clock& clock_;
  const int most_;
  CoreLoadReader reader_;
  ThreadShare share_;
  CoreLoad last_;
  TimePoint looked_;
  std::optional<TimePoint> warned_;
  int threads_;
  bool active_;
};

}  // namespace valora::ops
