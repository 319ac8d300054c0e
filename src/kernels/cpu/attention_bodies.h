// The attention's inner functions beside the products, one table an instruction set and type.
#pragma once

#include <cstdint>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/panels.h"

namespace valora::kernels {

// sums[row, i] += Σ over keys of weights[row, key] · value[key, i], values in blocks of
// kPanelOutputs keys.
template <typename T>
struct ValueSum {
  const T* weights = nullptr;  // [rows, keys], rows ldw elements apart
  int64_t rows = 0;
  int64_t ldw = 0;
  int64_t keys = 0;                  // keys of the last block beyond this are not read
  const T* const* blocks = nullptr;  // of each block the head's panels
  const T* const* fetch =
      nullptr;  // of each block, as much memory again to be fetched meanwhile, or none
  int64_t dim = 0;
  float* sums = nullptr;  // [rows, panels_of(dim) * 16]
};

// A row's scores of `keys` more keys into weights relative to the row's top so far.
template <typename T>
struct Weighing {
  const float* scores = nullptr;  // [keys], and room up to a multiple of kPanelOutputs
  int64_t keys = 0;
  int64_t width = 0;  // weights beyond the keys, up to here, are zero
  float scale = 1;
  float top = 0;         // of all keys so far, times scale; is moved on
  float total = 0;       // of the weights so far; is moved on
  float fade = 1;        // what earlier sums are to be multiplied with
  T* weights = nullptr;  // [width], and room up to a multiple of kPanelOutputs
};

template <typename T>
struct AttentionBodies {
  void (*add_values)(const ValueSum<T>& sum);
  void (*weigh)(Weighing<T>& row);
};

extern const AttentionBodies<bf16> kAvx512Bf16Attention;
extern const AttentionBodies<bf16> kAvx512Attention;
extern const AttentionBodies<bf16> kAvx2Attention;
extern const AttentionBodies<bf16> kPortableAttention;
extern const AttentionBodies<float> kAvx512FloatAttention;
extern const AttentionBodies<float> kAvx2FloatAttention;
extern const AttentionBodies<float> kPortableFloatAttention;

// Those of isa().
template <typename T>
const AttentionBodies<T>& attention_bodies();

}  // namespace valora::kernels
