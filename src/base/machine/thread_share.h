// How many compute threads a process should run while other programs use its CPUs.
//
// A parallel launch waits for its slowest thread. If another program holds one thread's CPU, all
// threads wait for that program's time slice: milliseconds for a launch of microseconds. Two
// threads on two cores next to one busy program are many times slower than one thread. So once the
// process's threads are seen to wait for CPUs, each CPU that others keep busy costs one thread.
#pragma once

#include "base/machine/core_load.h"

namespace valora {

class ThreadShare {
 public:
  // `most`: threads to run when nothing else is running, on `cpus` CPUs. Both at least 1.
  ThreadShare(int most, int cpus);

  // spent: CPU time since the last update, over `seconds` of wall time (above 0).
  void update(const CoreLoad& spent, double seconds);

  int threads() const { return threads_; }   // 1 to `most`
  double others() const { return others_; }  // CPUs kept busy by others, at the last update

 private:
  const int most_, cpus_;
  int threads_;
  double others_ = 0;
  bool crowded_ = false;
};

}  // namespace valora
