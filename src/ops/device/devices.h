// The devices of ranks: the CPU for all of them, or one GPU each.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace valora::ops {

// first: rank 0's device.
inline at::Device device_of_rank(at::Device first, int rank) {
  if (!first.is_cuda()) return first;
  return {first.type(), static_cast<c10::DeviceIndex>(first.index() + rank)};
}

inline int gpu_count() { return c10::impl::VirtualGuardImpl(at::kCUDA).deviceCount(); }

// Makes a GPU the calling thread's current device, on which it launches. Does nothing on CPUs.
class OnDevice {
 public:
  explicit OnDevice(at::Device device) {
    if (device.is_cuda()) guard_.reset_device(device);
  }

 private:
  c10::OptionalDeviceGuard guard_;
};

}  // namespace valora::ops
