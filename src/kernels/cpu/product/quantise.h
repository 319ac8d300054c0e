// Quantises floating-point weights to integers with scales.
#pragma once

#include <cstdint>

namespace valora::kernels {

// Quantises one output of k inputs such that w[i] ≈ (values[i] - middle) · scales[i / group], with
// middle = 1 << (bits - 1) and bf16 scales. 8 bits: a group's largest magnitude becomes 127. 4
// bits: tries a few initial scales, refits each to its integers, and keeps the one with the least
// squared error, which may clip the largest values. Results are identical on all machines. False if
// a value is not finite.
bool quantise_row(const float* w, int64_t k, int bits, int64_t group, uint8_t* values,
                  float* scales);

}  // namespace valora::kernels
