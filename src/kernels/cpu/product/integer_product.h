// Products with weights in integers (integer_panels.h). The inputs stay in the compute dtype;
// integers become floats without rounding; sums are in fp32, with one multiply-add per group and
// output for the scale. Zero-points, minimums, and the offset of integers that a kernel decodes
// without subtracting, cost one more term each per group: the sum of the group's inputs times it.
#pragma once

#include <cstdint>

#include "kernels/cpu/isa/kernel_set.h"
#include "kernels/cpu/product/integer_panels.h"

namespace valora::kernels {

// The weights of a product of m rows for the panels [panel_begin, panel_end), and where its fp32
// results go.
struct IntegerOutputs {
  IntegerPanels w;
  int64_t m = 0;
  int64_t panel_begin = 0;
  int64_t panel_end = 0;
  bool add = false;             // y += sum, without bias; otherwise y = sum + bias
  const float* bias = nullptr;  // [w.n], or null
  float* y = nullptr;           // y[0] is row 0, output first_output
  int64_t ldy = 0;
  int64_t first_output = 0;
};

// x · wᵀ.
struct IntegerProduct : IntegerOutputs {
  // [m, w.k] with a row stride of ldx elements: float, or bf16 (KernelSet::float_inputs).
  const void* x = nullptr;
  int64_t ldx = 0;
  // The sums of each row's inputs per group, [m, groups] with a row stride of ldg; null if
  // needs_group_sums() is false.
  const float* group_sums = nullptr;
  int64_t ldg = 0;
  // Chunks of inputs.
  int64_t chunk_begin = 0;
  int64_t chunk_end = 0;
  // The integers of these panels and chunks as KernelSet::decode_integers wrote them, unless inputs
  // are float; null: they are decoded in registers.
  const void* decoded = nullptr;
};

// Panels that are decoded together, and the widest tile.
inline constexpr int64_t kIntegerPanels = 4;

// Whether the product needs IntegerProduct::group_sums. nibble_offset: KernelSet::nibble_offset.
inline bool needs_group_sums(const IntegerPanels& w, int nibble_offset) {
  return w.zeros || w.minimums || (w.bits == 4 && nibble_offset != -8);
}

// The sums of each row's inputs per group: [m, ceil(k / group)]. T is float or bf16.
template <typename T>
void sum_groups(const T* x, int64_t m, int64_t ldx, int64_t k, int64_t group, float* sums);

// p over all chunks on the calling thread. With few rows integers are decoded in registers, with
// many once into memory that stays in L2. p.chunk_begin, p.chunk_end and p.decoded are set here.
template <typename T>
void multiply_integers(const KernelSet<T>& kernels, IntegerProduct p);

}  // namespace valora::kernels
