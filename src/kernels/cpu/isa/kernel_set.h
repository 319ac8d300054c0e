// The table of kernels for one instruction set and element type. A kernel computes a part of an
// operation on one thread. Each instruction set has its own source file (avx512bf16.cc etc.), which
// is compiled for it and defines its tables.
#pragma once

#include <cstdint>

#include "kernels/types/bf16.h"

namespace valora::kernels {

template <typename T>
struct Product;
template <typename T>
struct ValueSum;
template <typename T>
struct SoftmaxState;
template <typename T>
struct Merge;
struct MergeBlock;
struct IntegerProduct;
struct ChunkRange;

template <typename T>
struct KernelSet {
  void (*multiply)(const Product<T>& product);   // product/product.h
  void (*add_values)(const ValueSum<T>& sum);    // attention/softmax_state.h
  void (*update_softmax)(SoftmaxState<T>& row);  // attention/softmax_state.h
  // scratch: scratch_elements(rank, vectors of the block) elements, 64-byte aligned.
  void (*merge)(const Merge<T>& merge, const MergeBlock& block, T* scratch);  // merge/merge_block.h
  // Integer weights (product/integer_product.h).
  void (*multiply_integers)(const IntegerProduct& product);
  // Decodes to ordinary panels: of float if float_inputs, otherwise of T.
  void (*decode_integers)(const IntegerProduct& product, const ChunkRange& chunks, void* decoded);
  bool float_inputs;     // the x of multiply_integers is float; otherwise T
  int nibble_offset;     // 4-bit integers are decoded to value + nibble_offset
  int64_t integer_rows;  // up to this many rows, decoding in registers is faster
};

extern const KernelSet<bf16> kAvx512Bf16Kernels;
extern const KernelSet<bf16> kAvx512Kernels;
extern const KernelSet<bf16> kAvx2Kernels;
extern const KernelSet<bf16> kPortableKernels;
// As those of kAvx512Bf16Kernels, on CPUs with VBMI.
void multiply_integers_vbmi(const IntegerProduct& product);
extern const KernelSet<float> kAvx512FloatKernels;
extern const KernelSet<float> kAvx2FloatKernels;
extern const KernelSet<float> kPortableFloatKernels;

// The table for isa().
template <typename T>
const KernelSet<T>& kernel_set();

}  // namespace valora::kernels
