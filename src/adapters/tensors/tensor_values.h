// Checks on the values of tensors, and conversions.
#pragma once

#include <string>
#include <vector>

#include "base/tensors/safetensors.h"

namespace valora::adapters {

// True if adapters in this dtype can be served: F32, F16 or BF16.
bool is_served_dtype(DType dtype);

// True if the tensor has no NaN or infinity. Requires is_served_dtype(); the bytes may be
// unaligned.
bool all_finite(const TensorView& tensor);

// True if all values are zeros. Requires is_served_dtype() and values.
bool all_zero(const TensorView& tensor);

// The largest magnitude. Requires is_served_dtype() and finite values.
float largest_of(const TensorView& tensor);

// The square root of the sum of squares. Requires is_served_dtype().
double norm_of(const TensorView& tensor);

// The values in float. Requires is_served_dtype().
std::vector<float> floats_of(const TensorView& tensor);

std::string shape_text(const std::vector<int64_t>& shape);  // "[8, 64]"

}  // namespace valora::adapters
