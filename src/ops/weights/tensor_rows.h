// Reads rows of a tensor from an adapter's file in the dtype of the panels, on the calling thread.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "base/tensors/safetensors.h"
#include "kernels/types/bf16.h"

namespace valora::ops {

// T: float, kernels::bf16 or c10::Half. Rounds as ATen does.
template <typename From, typename T>
T converted(From value) {
  const auto wide = [](auto v) {
    if constexpr (std::is_same_v<decltype(v), c10::Half>)
      return static_cast<float>(v);
    else
      return kernels::to_float(v);
  };
  if constexpr (std::is_same_v<From, T>)
    return value;
  else if constexpr (std::is_same_v<T, c10::Half>)
    return c10::Half(wide(value));
  else
    return kernels::from_float<T>(wide(value));
}

// The tensor is F32, F16 or BF16, [n, k], aligned or not.
template <typename T>
class TensorRows {
 public:
  TensorRows(const TensorView& tensor, int64_t k) : tensor_(tensor), k_(k) {}

  // The pointer is valid until the next call.
  const T* read(int64_t row, int64_t count) {
    const auto stride = static_cast<int64_t>(dtype_size(tensor_.dtype)) * k_;
    const uint8_t* from = tensor_.bytes.data() + row * stride;
    if (tensor_.dtype == kSame && reinterpret_cast<uintptr_t>(from) % alignof(T) == 0)
      return reinterpret_cast<const T*>(from);
    scratch_.resize(static_cast<size_t>(count * k_));
    switch (tensor_.dtype) {
      case DType::kF32: convert<float>(from, count * k_); break;
      case DType::kF16: convert<c10::Half>(from, count * k_); break;
      default: convert<kernels::bf16>(from, count * k_); break;
    }
    return scratch_.data();
  }

 private:
  static constexpr DType kSame = std::is_same_v<T, float>       ? DType::kF32
                                 : std::is_same_v<T, c10::Half> ? DType::kF16
                                                                : DType::kBF16;

  template <typename From>
  void convert(const uint8_t* from, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      From value;
      std::memcpy(&value, from + i * static_cast<int64_t>(sizeof(From)), sizeof(From));
      scratch_[i] = converted<From, T>(value);
    }
  }

  const TensorView& tensor_;
  int64_t k_;
  std::vector<T> scratch_;
};

}  // namespace valora::ops
