// Reproducible, normally distributed values for benchmarks, cheap to create in any number.
#pragma once

#include <ATen/ATen.h>

#include <cmath>

namespace valora::bench {

// Repeats a normally distributed sample of about 2^18 values: the speed of products does not depend
// on the values.
at::Tensor normal_tensor(at::IntArrayRef sizes, at::ScalarType dtype, double scale, uint64_t seed);

inline at::Tensor weight_tensor(int64_t out, int64_t in, at::ScalarType dtype, uint64_t seed) {
  return normal_tensor({out, in}, dtype, 1 / std::sqrt(static_cast<double>(in)), seed);
}

}  // namespace valora::bench
