// Computation launched on a device that may still be running while the host continues.
#pragma once

#include <ATen/ATen.h>

#include <memory>

namespace valora::ops {

// Must be used from one thread. Both calls throw c10::Error if the device fails or has failed in
// earlier launches.
class LaunchedWork {
 public:
  virtual ~LaunchedWork() = default;

  // Marks the end of a part, consisting of everything launched since the last call, and waits for
  // the part before it. The device stays busy while the host launches the next part, and the host
  // is at most one part ahead.
  virtual void end_part() = 0;
  // Waits for all launched work.
  virtual void wait() = 0;
};

// For the stream on which ATen launches on this device. On the CPU, work is complete when its call
// returns, so both calls do nothing.
std::unique_ptr<LaunchedWork> launched_work(at::Device device);

}  // namespace valora::ops
