// Copies between host memory and the memory of a device, beside the computation there.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Stream.h>

#include <span>

namespace valora::ops {

// Used by one thread. Throws c10::Error if the device fails.
class Copier {
 public:
  virtual ~Copier() = default;

  // Begins a copy, of equal sizes. Both stay until wait().
  virtual void copy(const at::Tensor& to, const at::Tensor& from) = 0;
  // Waits for the copies.
  virtual void wait() = 0;
};

// Copies on a stream of its own, after the computation that was launched before: it may still read
// `to` or write `from`. The one in host memory is pinned.
class DeviceCopier final : public Copier {
 public:
  // Not the CPU.
  explicit DeviceCopier(at::Device device);

  void copy(const at::Tensor& to, const at::Tensor& from) override;
  void wait() override { stream_.synchronize(); }

 private:
  c10::Stream stream_;
};

struct Copy {
  at::Tensor to, from;
};
// Copies all and waits for them. If a copy cannot begin, it waits for those before, whose memory
// the caller may give to others when this throws.
void copy_all(Copier& copier, std::span<const Copy> copies);

// Uninitialised bytes of host memory that the device can copy from and to. Throws c10::Error if
// memory is exhausted. The allocator keeps freed memory, and rounds sizes up to powers of two.
at::Tensor pinned_bytes(int64_t bytes);

}  // namespace valora::ops
