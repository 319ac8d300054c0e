// Adjusts the number of libtorch's compute threads, running fewer while other programs use the
// cores (base/machine/thread_share.h).
#pragma once

#include "base/clock.h"
#include "base/machine/core_load.h"
#include "base/machine/thread_share.h"

namespace valora::ops {

// Sets this thread's number of compute threads, and that of threads created later. 0: as it is, but
// at most one per core that the process may use (base/machine/cores.h).
void set_compute_threads(int threads);

class ComputeThreads {
 public:
  // Construct on the computing thread; its current number of threads becomes the maximum.
  explicit ComputeThreads(const Clock& clock = real_clock(), CoreLoadFiles files = {});
  ~ComputeThreads();  // restores the number of threads; call on the same thread
  ComputeThreads(const ComputeThreads&) = delete;
  ComputeThreads& operator=(const ComputeThreads&) = delete;

  // Call from the computing thread between launches. Checks the cores every quarter of a second,
  // which takes about 0.1 ms; other calls only read a clock. Logs a warning when the number of
  // threads falls, at most once per minute.
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
