// What a Gated DeltaNet layer computes between its linears (transformers: Qwen3_5GatedDeltaNet): a
// causal convolution, the gated delta rule (torch_recurrent_gated_delta_rule), token by token, and
// the gated norm. T is float or bf16; matrices are fp32. Values do not depend on how a sequence is
// divided into steps. Arguments are not checked.
//
// A value head has a matrix S of key_dim rows and value_dim columns. For each token it takes the
// query q and key k, both normalised to length 1 and q then divided by √key_dim, the value v, the
// decay d in 0 … 1 and the rate β:
//   S ← d·S,  S ← S + k ⊗ β·(v - Sᵀk),  o = Sᵀq,
// and the token's output is o / √(mean(o²) + eps) · weight · silu(z).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/threads/parallel.h"
#include "kernels/types/bf16.h"
#include "kernels/types/spans.h"
#include "kernels/types/state_layout.h"

namespace valora::kernels {

// A state of a layer. const T and const float where it is only read.
template <typename T, typename F>
struct DeltaState {
  F* const* heads = nullptr;   // a matrix per value head, as head_floats() says; null: no state
  T* const* window = nullptr;  // taps - 1 rows of inputs of the convolution, oldest first
  explicit operator bool() const { return heads != nullptr; }
};

// Rows [begin, begin + count) of the batch.
template <typename T>
struct DeltaSpan {
  int64_t begin = 0, count = 0;
  DeltaState<const T, const float> from;  // before the rows; none: zeros
  DeltaState<T, float> to;                // after the rows; may equal `from`
  struct Kept {
    DeltaState<T, float> to;
    int64_t after = 0;  // rows of the span that the state includes
  };
  std::array<Kept, StateSpan::kMostKept> kept = {};  // ascending
};

// Row strides in elements.
template <typename T>
struct DeltaInputs {
  // [T, channels]: all queries, all keys, all values, before the convolution. Each query and key
  // head serves value_heads / key_heads adjacent value heads.
  const T* qkv = nullptr;
  int64_t ld_qkv = 0;
  const T* conv = nullptr;  // weights of the convolution, [taps, channels]
  // [T, value_heads]: β = sigmoid(b), d = exp(-rate · softplus(a + bias)).
  const T *a = nullptr, *b = nullptr;
  int64_t ld_a = 0, ld_b = 0;
  const float *rate = nullptr, *bias = nullptr;  // [value_heads]
  const T* z = nullptr;                          // [T, value_heads · value_dim]
  int64_t ld_z = 0;
  const T* weight = nullptr;  // norm weight, [value_dim]
  float eps = 1e-6f;
};

// y: [T, value_heads · value_dim], contiguous. A convolved value is rounded to T once.
template <typename T>
void gated_delta(const StateShape& shape, const DeltaInputs<T>& inputs,
                 std::span<const DeltaSpan<T>> spans, T* y, const ParallelFor& parallel);

}  // namespace valora::kernels
