// Tables of a step on a GPU, for the *_cuda.cc files.
#pragma once

#include <ATen/ATen.h>

#include <cstring>
#include <vector>

namespace valora::ops {

// Arrays of several types in one copy to a device. The arrays begin 16-byte aligned.
class DeviceTables {
 public:
  // → the offset of the array
  template <typename T>
  size_t add(const std::vector<T>& values) {
    constexpr size_t kAlignment = 16;
    const size_t at = (bytes_.size() + kAlignment - 1) / kAlignment * kAlignment;
    bytes_.resize(at + values.size() * sizeof(T));
    if (!values.empty()) std::memcpy(bytes_.data() + at, values.data(), values.size() * sizeof(T));
    return at;
  }
  void copy_to(at::Device device) {
    memory_ = at::empty({static_cast<int64_t>(bytes_.size())}, at::kByte);
    if (!bytes_.empty()) std::memcpy(memory_.data_ptr(), bytes_.data(), bytes_.size());
    memory_ = memory_.to(device);
  }
  // On the device.
  template <typename T>
  const T* at(size_t offset) const {
    return reinterpret_cast<const T*>(static_cast<const std::byte*>(memory_.const_data_ptr()) +
                                      offset);
  }

 private:
  std::vector<std::byte> bytes_;
  at::Tensor memory_;
};

}  // namespace valora::ops
