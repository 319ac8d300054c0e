// Copies between host memory and device memory, concurrently with computation on the device.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Stream.h>

#include <span>

namespace valora::ops {

// Must be used from one thread. Throws c10::Error if the device fails.
class Copier {
 public:
  virtual ~Copier() = default;

  // Starts a copy between tensors of equal size. Both must stay valid until wait().
  virtual void copy(const at::Tensor& to, const at::Tensor& from) = 0;
  // Waits for all copies.
  virtual void wait() = 0;
};

// Copies on its own stream, after any computation launched earlier, which may still be reading `to`
// or writing `from`. The host tensor must be pinned.
class DeviceCopier final : public Copier {
 public:
  // device: not the CPU.
  explicit DeviceCopier(at::Device device);

  void copy(const at::Tensor& to, const at::Tensor& from) override;
  void wait() override { stream_.synchronize(); }

 private:
  c10::Stream stream_;
};

struct Copy {
  at::Tensor to, from;
};
// Copies for one device.
struct CopyList {
  Copier& copier;
  std::span<const Copy> copies;
};
// Runs all copies, on all devices at the same time, and waits for them. If a copy cannot begin, it
// waits for the copies already begun, so that the caller may reuse their memory once this throws.
void copy_all(std::span<const CopyList> lists);

// Uninitialised host memory from and to which the device can copy. Throws c10::Error if memory is
// exhausted. The allocator keeps freed memory and rounds sizes up to powers of two.
at::Tensor pinned_bytes(int64_t bytes);

}  // namespace valora::ops
