// Values for measurements: normal, the same in every run, and cheap in any number.
#pragma once

#include <ATen/ATen.h>

#include <cmath>

namespace valora::bench {

// A normal sample of at most 2^18 values, repeated: products' speed does not depend on values.
at::Tensor normal_tensor(at::IntArrayRef sizes, at::ScalarType dtype, double scale, uint64_t seed);

inline at::Tensor weight_tensor(int64_t out, int64_t in, at::ScalarType dtype, uint64_t seed) {
  return normal_tensor({out, in}, dtype, 1 / std::sqrt(static_cast<double>(in)), seed);
}

}  // namespace valora::bench
