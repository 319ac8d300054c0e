// Tables of a step in GPU memory, for the *_cuda.cc files.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

namespace valora::ops {

// Collects arrays of several types for a single copy to a device. Arrays begin 16-byte aligned.
class DeviceTables {
 public:
  // → the array's offset in bytes
  template <typename T>
  size_t add(std::span<const T> values) {
    constexpr size_t kAlignment = 16;
    const size_t at = (bytes_.size() + kAlignment - 1) / kAlignment * kAlignment;
    bytes_.resize(at + values.size_bytes());
    if (!values.empty()) std::memcpy(bytes_.data() + at, values.data(), values.size_bytes());
    return at;
  }
  template <typename T>
  size_t add(const std::vector<T>& values) {
    return add(std::span<const T>(values));
  }
  // Starts the tables of the next step. Their addresses stay the same if it adds arrays of the same
  // sizes; only the last one may differ.
  void clear() { bytes_.clear(); }
  size_t bytes() const { return bytes_.size(); }
  // Allocates at least this many bytes at the first copy, so that the last array may grow.
  void reserve(size_t bytes) { reserved_ = std::max(reserved_, bytes); }

  void copy_to(at::Device device) {
    const auto size = static_cast<int64_t>(bytes_.size());
    if (!memory_.defined() || memory_.numel() < size) {
      const int64_t room = std::max(size, static_cast<int64_t>(reserved_));
      host_ = at::empty({room}, at::TensorOptions().dtype(at::kByte).pinned_memory(true));
      memory_ = at::empty({room}, at::TensorOptions().dtype(at::kByte).device(device));
    }
    if (size == 0) return;
    std::memcpy(host_.data_ptr(), bytes_.data(), bytes_.size());
    memory_.narrow(0, 0, size).copy_(host_.narrow(0, 0, size), /*non_blocking=*/true);
  }
  // The address on the device.
  template <typename T>
  const T* at(size_t offset) const {
    return reinterpret_cast<const T*>(static_cast<const std::byte*>(memory_.const_data_ptr()) +
                                      offset);
  }
  const at::Tensor& memory() const { return memory_; }
  // At least `bytes` on the device for results of launches within a step. Calls with no more bytes
  // than an earlier one return the same memory.
  const at::Tensor& scratch(size_t bytes, at::Device device) {
    const auto size = static_cast<int64_t>(bytes);
    if (!scratch_.defined() || scratch_.numel() < size)
      scratch_ = at::empty({size}, at::TensorOptions().dtype(at::kByte).device(device));
    return scratch_;
  }

 private:
  std::vector<std::byte> bytes_;
  size_t reserved_ = 0;
  at::Tensor host_, memory_, scratch_;
};

}  // namespace valora::ops
