// Copies between host memory and the memory of a device, beside the computation there.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Stream.h>

namespace valora::ops {

// Used by one thread. Throws c10::Error if the device fails.
class DeviceCopier {
 public:
  // Not the CPU.
  explicit DeviceCopier(at::Device device);

  // Begins a copy on a stream of the copier's own, after the computation that was launched before:
  // it may still read `to` or write `from`. Of equal sizes; the one in host memory is pinned and
  // stays until wait().
  void copy(const at::Tensor& to, const at::Tensor& from);
  // Waits for the copies.
  void wait() const { stream_.synchronize(); }

 private:
  c10::Stream stream_;
};

// Uninitialised bytes of host memory that the device can copy from and to. Throws c10::Error if
// memory is exhausted. The allocator keeps freed memory, and rounds sizes up to powers of two.
at::Tensor pinned_bytes(int64_t bytes);

}  // namespace valora::ops
