// Integers and scales for weights that are stored as floats.
#pragma once

#include <cstdint>

namespace valora::kernels {

// One output of k inputs: w[i] is about (values[i] - middle) · scales[i / group], with the middle
// 1 << (bits - 1); scales are of bf16. 8 bits: the largest magnitude of a group is 127. 4 bits: for
// each of a few scales, the one that fits its integers best; of these the one with the least
// squared error, which may cut off the largest values. Equal on all machines. False if a value is
// not finite.
bool quantise_row(const float* w, int64_t k, int bits, int64_t group, uint8_t* values,
                  float* scales);

}  // namespace valora::kernels
