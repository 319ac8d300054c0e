// How many compute threads a process should run while other programs use its CPUs.
//
// The threads of a parallel launch wait for the slowest of them. If another program holds the CPU
// of one, all wait for that program's time slice, some milliseconds, per launch of some
// microseconds: two threads on two cores beside one busy program are many times slower than one
// thread. So each CPU that others keep busy costs one thread, as soon as the process's threads are
// seen to wait.
#pragma once

#include "base/core_load.h"

namespace valora {

class ThreadShare {
 public:
  // `most`: threads while nothing else runs, on `cpus` CPUs. Both at least 1.
  ThreadShare(int most, int cpus);

  // What was spent since the last update, in `seconds` of wall time (above 0).
  void update(const CoreLoad& spent, double seconds);

  int threads() const { return threads_; }   // 1 to `most`
  double others() const { return others_; }  // CPUs that others kept busy at the last update

 private:
  const int most_, cpus_;
  int threads_;
  double others_ = 0;
  bool crowded_ = false;
};

}  // namespace valora
