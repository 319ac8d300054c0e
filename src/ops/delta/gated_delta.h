// The gated delta rule with the convolution before it and the gated norm after it: everything that
// a Gated DeltaNet layer computes between its linears (transformers: Qwen3_5GatedDeltaNet). Invalid
// arguments throw c10::Error.
#pragma once

#include <ATen/ATen.h>

#include <span>

#include "kernels/types/spans.h"
#include "ops/delta/state_arena.h"
#include "ops/step/span_tables.h"

namespace valora::ops {

struct DeltaWeights {
  at::Tensor conv;  // [taps, channels]
  at::Tensor rate;  // float [value_heads]: exp(A_log)
  at::Tensor bias;  // float [value_heads]: dt_bias
  at::Tensor norm;  // [value_dim]
  double eps = 1e-6;
};

// T tokens: qkv [T, channels], before the convolution; z [T, value_heads · value_dim]; b and a [T,
// value_heads]. Rows may have any stride.
struct DeltaTokens {
  at::Tensor qkv, z, b, a;
};

// True if gated_delta() runs on this device: on GPUs in builds with their kernels.
bool serves_states(at::Device device);

// A serving step: reads and writes the states of its sequences, one StateSpan per span. Used with
// the reference backend too. tables: for these spans, reused from layer to layer; null: built for
// this call. → [T, value_heads · value_dim]; rows outside all spans are unspecified
at::Tensor gated_delta(const DeltaTokens& tokens, const DeltaWeights& weights,
                       const StateArena& states, int64_t layer,
                       std::span<const kernels::QuerySpan> spans,
                       std::span<const StateSpan> state_spans, StateSpanTables* tables = nullptr);

// The same for whole sequences that start without a state, for training. Differentiable.
at::Tensor sequence_gated_delta(const DeltaTokens& tokens, const DeltaWeights& weights,
                                const StateShape& shape, std::span<const kernels::QuerySpan> spans);

}  // namespace valora::ops
