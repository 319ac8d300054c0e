// Computation that was launched on a device and may still run there when the host goes on.
#pragma once

#include <ATen/ATen.h>

#include <memory>

namespace valora::ops {

// Used by one thread. Both calls throw c10::Error if the device fails, also in what was launched
// before.
class LaunchedWork {
 public:
  virtual ~LaunchedWork() = default;

  // Ends a part: what was launched since the last call. Waits for the part before it, so that the
  // device has work while the host launches the next part, and the host is one part ahead at most.
  virtual void end_part() = 0;
  // Waits for all.
  virtual void wait() = 0;
};

// Of the stream on which ATen launches on this device. On the CPU all has ended when it returns, so
// both calls do nothing.
std::unique_ptr<LaunchedWork> launched_work(at::Device device);

}  // namespace valora::ops
