// The table of kernels for one instruction set and element type. A kernel computes a part of an
// operation on one thread.
#pragma once

#include <cstdint>

#include "kernels/types/bf16.h"
#include "kernels/types/packed.h"

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
  bool float_inputs;             // the x of multiply_integers is float; otherwise T
  PerBits<int> integer_offsets;  // integers are decoded to value + offset
  int64_t integer_rows;          // up to this many rows, decoding in registers is faster
};

// With AMX, products of up to this many rows are still those of vectors: they wait for memory,
// which both read as fast.
inline constexpr int64_t kVectorRows = 4;

// The table for isa().
template <typename T>
const KernelSet<T>& kernel_set();

// True if a product of so few rows that it waits for memory reads weights faster with prefetches
// just ahead of the loads than with those of the next panels: on CPUs of Intel, where far
// prefetches occupy line fill buffers of L1, for which loads from L2 then wait, and on AMD's
// without AVX-512. sums: how many of 16 outputs a tile keeps in registers.
bool fetches_near(int64_t rows, int sums);

}  // namespace valora::kernels
