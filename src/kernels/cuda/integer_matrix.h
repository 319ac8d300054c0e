// Weights in integers of 8 or 4 bits in the layout that GPU kernels read: fragments of tensor
// cores, so that a lane loads its share with one access of 16 bytes.
//
// An [n, k] matrix with w[o][i] = (values[o][i] - zeros[o][g]) · scales[o][g], g = i / group, or
// w[o][i] = values[o][i] · scales[o][g] + minimums[o][g], is cut into strips of 16 outputs. Its
// memory has three parts, each 16-byte aligned:
//   the integers, [strips][chunks][32 lanes][16 bytes]. A chunk has kStepInputs inputs in 8 bits
//     and twice as many in 4 bits. Of each kStepInputs, lane 4g + q has inputs 8q to 8q + 7 of
//     outputs 2g and 2g + 1 of the strip, as words of 32 bits:
//     8 bits: two words of output 2g, two of output 2g + 1; a byte each, in the order of inputs
//     4 bits: one word of output 2g, one of output 2g + 1, the same of the second half of the
//             chunk. Input 2s is in bits 4s to 4s + 3, input 2s + 1 in bits 16 + 4s to 19 + 4s
//   the scales [strips][groups][16], in the smallest dtype that represents all of them exactly
//   the zero-points [strips][groups][16] in bytes (none if all are the middle, middle_of(bits)), or
//   the minimums [strips][groups][16] in fp32
// Padding of outputs and inputs never affects a result.
#pragma once

#include "base/threads/parallel.h"
#include "kernels/cuda/types.h"

namespace valora::kernels::cuda {

inline constexpr int32_t kStripOuts = 16;
inline constexpr int32_t kStepInputs = 32;  // inputs of two products on tensor cores
inline constexpr int32_t kPadInputs = 64;

struct IntegerMatrix {
  const std::byte* data = nullptr;  // 16-byte aligned
  int32_t n = 0;                    // outputs
  int32_t k = 0;                    // inputs
  int32_t group = 0;                // inputs per group
  int32_t bits = 8;                 // 8 or 4
  Dtype scales = Dtype::kFloat;
  bool zeros = false;     // zero-points are stored
  bool minimums = false;  // minimums are stored instead of zero-points
  int64_t scales_at = 0;  // byte offset in data
  int64_t zeros_at = 0;   // byte offset of the zero-points or minimums
  int64_t bytes = 0;      // total size
  int32_t strips = 0, chunks = 0, groups = 0;
  // Input i is in group i >> group_shift, unless that is negative: then in i / group.
  int32_t group_shift = -1;
};

// True if the kernels support groups of this size: multiples of kStepInputs, or all of k.
constexpr bool is_device_group(int64_t group, int64_t k) {
  return group > 0 && (group % kStepInputs == 0 || group >= k);
}

// The layout of a matrix, without data. is_device_group(group, k) must hold.
IntegerMatrix integer_matrix(int32_t n, int32_t k, int32_t bits, int32_t group, Dtype scales,
                             bool zeros, bool minimums = false);
// The smallest dtype that represents all scales exactly. They are in host memory.
Dtype dtype_of_scales(const float* scales, int64_t count);

// The values stored per group, [n, groups], row-major, in host memory. zeros and minimums: null if
// the matrix stores none.
struct IntegerGroups {
  const float* scales = nullptr;
  const uint8_t* zeros = nullptr;
  const float* minimums = nullptr;
};
// Writes m.bytes bytes. values: [n, k], row-major, each below 1 << bits. All in host memory.
void pack_matrix(const IntegerMatrix& m, const uint8_t* values, const IntegerGroups& groups,
                 std::byte* to, const ParallelFor& parallel);
// The weights in fp32, [n, k] row-major. m.data and w: in host memory.
void decode_matrix(const IntegerMatrix& m, float* w, const ParallelFor& parallel);

}  // namespace valora::kernels::cuda
