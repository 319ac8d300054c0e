// The gated delta rule (Gated DeltaNet; transformers: torch_recurrent_gated_delta_rule) with the
// gated norm behind it, token by token. T is float or bf16; states are fp32. The same values
// whichever steps a sequence is computed in. Arguments are not checked.
//
// A value head has a matrix S of key_dim rows and value_dim columns. With the head's query q and
// key k of a token, both of length 1, q divided by √key_dim, its value v, its decay d in 0 … 1 and
// its rate β:
//   S ← d·S,  S ← S + k ⊗ β·(v - Sᵀk),  o = Sᵀq,
// and the token's output is o / √(mean(o²) + eps) · weight · silu(z).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/parallel.h"
#include "kernels/types/bf16.h"
#include "kernels/types/state_layout.h"
#include "kernels/types/state_span.h"

namespace valora::kernels {

// Rows [begin, begin + count) of the batch. A state is a matrix per value head, as head_floats()
// has it.
struct DeltaSpan {
  int64_t begin = 0, count = 0;
  const float* const* from = nullptr;  // before the rows; null: zeros
  float* const* to = nullptr;          // after the rows; may be `from`
  struct Kept {
    float* const* to = nullptr;  // null: none
    int64_t after = 0;           // the state after so many rows
  };
  std::array<Kept, StateSpan::kMostKept> kept = {};  // ascending
};

// Row strides in elements.
template <typename T>
struct DeltaInputs {
  // [T, 2 · key_heads · key_dim + value_heads · value_dim]: all queries, all keys, all values. A
  // head of queries and keys serves value_heads / key_heads adjacent value heads.
  const T* qkv = nullptr;
  int64_t ld_qkv = 0;
  // [T, value_heads]: β = sigmoid(b), d = exp(-rate · softplus(a + bias)).
  const T *a = nullptr, *b = nullptr;
  int64_t ld_a = 0, ld_b = 0;
  const float *rate = nullptr, *bias = nullptr;  // [value_heads]
  const T* z = nullptr;                          // [T, value_heads · value_dim]
  int64_t ld_z = 0;
  const T* weight = nullptr;  // of the norm, [value_dim]
  float eps = 1e-6f;
};

// y: [T, value_heads · value_dim], contiguous.
template <typename T>
void gated_delta(const StateShape& shape, const DeltaInputs<T>& inputs,
                 std::span<const DeltaSpan> spans, T* y, const ParallelFor& parallel);

}  // namespace valora::kernels
