// What a step launches on a GPU, captured once and replayed by one launch.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>

namespace valora::ops {

class CapturedLaunches {
 public:
  virtual ~CapturedLaunches() = default;
  // Launches all of it again, on the current stream.
  virtual void replay() = 0;
};

class LaunchCapture {
 public:
  virtual ~LaunchCapture() = default;
  // Null where launches cannot be captured.
  static std::unique_ptr<LaunchCapture> make(at::Device device);

  // launch() is called twice: once before, because libraries allocate what they keep. The tensors
  // that it makes have their memory as long as the captured launches live; captures share it, so
  // only one may be under way. Throws if a launch cannot be captured, and nothing is left of it.
  virtual std::unique_ptr<CapturedLaunches> capture(const std::function<void()>& launch) = 0;
};

}  // namespace valora::ops
