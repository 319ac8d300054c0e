// Checks of tensor content.
#pragma once

#include <string>
#include <vector>

#include "base/safetensors.h"

namespace valora::adapters {

// True if adapters can be served from the dtype: F32, F16 or BF16.
bool is_served_dtype(DType dtype);

// True if the tensor has no NaN and no infinity. Its dtype must satisfy is_served_dtype(); its
// bytes may be unaligned.
bool all_finite(const TensorView& tensor);

// The square root of the sum of squares. The dtype must be a served one.
double norm_of(const TensorView& tensor);

// The values in float. The dtype must be a served one.
std::vector<float> floats_of(const TensorView& tensor);

std::string shape_text(const std::vector<int64_t>& shape);  // "[8, 64]"

}  // namespace valora::adapters
