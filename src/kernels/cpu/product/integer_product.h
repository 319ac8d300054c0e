// Products with integer weights (integer_panels.h). Inputs stay in the compute dtype, and sums are
// in fp32.
//
// With few rows, integers are converted to floats exactly, with one multiply-add per group and
// output for the scale. Zero-points, minimums, and an offset that the kernel does not subtract
// while decoding each add one more term per group: the sum of the group's inputs times that value.
//
// With many rows, weights are first decoded with their scales, as ordinary panels. With bf16
// instructions that rounds each weight to bf16, as transformers does when it decodes a checkpoint.
#pragma once

#include <cstdint>

#include "kernels/cpu/isa/kernel_set.h"
#include "kernels/cpu/product/integer_panels.h"
#include "kernels/types/packed.h"

namespace valora::kernels {

// The weights for panels [panel_begin, panel_end) of a product of m rows, and the destination of
// its fp32 results.
struct IntegerOutputs {
  IntegerPanels w;
  int64_t m = 0;
  int64_t panel_begin = 0;
  int64_t panel_end = 0;
  const float* bias = nullptr;  // [w.n], or null
  float* y = nullptr;           // y[0] is row 0, output first_output
  int64_t ldy = 0;
  int64_t first_output = 0;
};

// Computes x · wᵀ.
struct IntegerProduct : IntegerOutputs {
  // [m, inputs_of_chunks(w)] with a row stride of ldx elements: float, or bf16
  // (KernelSet::float_inputs). Those after w.k are zeros.
  const void* x = nullptr;
  int64_t ldx = 0;
  // The sum of each row's inputs per group, [m, groups] with a row stride of ldg; null if
  // needs_group_sums() is false.
  const float* group_sums = nullptr;
  int64_t ldg = 0;
};

// A range of input chunks.
struct ChunkRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// Panels decoded together; also the widest tile.
inline constexpr int64_t kIntegerPanels = 4;

// True if the product needs IntegerProduct::group_sums. offsets: KernelSet::integer_offsets.
inline bool needs_group_sums(const IntegerPanels& w, const PerBits<int>& offsets) {
  return w.zeros || w.minimums || offsets[w.bits] != -usual_zero(w);
}

// The sums of each row's inputs per group: [m, ceil(k / group)]. T is float or bf16.
template <typename T>
void sum_groups(const T* x, int64_t m, int64_t ldx, int64_t k, int64_t group, float* sums);

// Computes p on the calling thread. With few rows, integers are decoded in registers; with many,
// once into memory that stays in L2.
template <typename T>
void multiply_integers(const KernelSet<T>& kernels, const IntegerProduct& p);

}  // namespace valora::kernels
