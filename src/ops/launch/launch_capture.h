// A step's GPU launches, captured once and replayed by a single launch.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>

namespace valora::ops {

class CapturedLaunches {
 public:
  virtual ~CapturedLaunches() = default;
  // Repeats all launches on the current stream.
  virtual void replay() = 0;
};

class LaunchCapture {
 public:
  virtual ~LaunchCapture() = default;
  // Null if launches cannot be captured on this device.
  static std::unique_ptr<LaunchCapture> make(at::Device device);

  // Calls launch() twice: the first time uncaptured, because libraries allocate memory that they
  // keep. Tensors that launch() makes keep their memory as long as the captured launches exist.
  // Captures share memory, so only one may be running at a time. If a launch cannot be captured,
  // throws and leaves nothing behind.
  virtual std::unique_ptr<CapturedLaunches> capture(const std::function<void()>& launch) = 0;
};

}  // namespace valora::ops
