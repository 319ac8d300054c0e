#include "ops/delta/gated_delta.h"

#include "ops/delta/gated_delta_targets.h"
#include "ops/device/dispatch.h"

namespace valora::ops {
namespace {

void check_tokens(const DeltaTokens& x, const StateShape& s) {
  const auto rows = [&](const at::Tensor& t, int64_t width) {
    return t.dim() == 2 && t.size(0) == x.qkv.size(0) && t.size(1) == width && t.stride(1) == 1 &&
           t.scalar_type() == x.qkv.scalar_type() && t.device() == x.qkv.device();
  };
  TORCH_CHECK(rows(x.qkv, s.channels) && rows(x.z, s.value_heads * s.value_dim) &&
                  rows(x.a, s.value_heads) && rows(x.b, s.value_heads),
              "gated_delta: qkv ", x.qkv.sizes(), ", z ", x.z.sizes(), ", b ", x.b.sizes(), ", a ",
              x.a.sizes());
}

void check_weights(const DeltaWeights& w, const at::Tensor& x, const StateShape& s) {
  const auto of_type = [&](const at::Tensor& t, at::ScalarType type) {
    return t.is_contiguous() && t.scalar_type() == type && t.device() == x.device();
  };
  TORCH_CHECK(of_type(w.conv, x.scalar_type()) && w.conv.size(0) == s.taps &&
                  w.conv.size(1) == s.channels && of_type(w.norm, x.scalar_type()) &&
                  w.norm.size(0) == s.value_dim && of_type(w.rate, at::kFloat) &&
                  of_type(w.bias, at::kFloat) && w.rate.numel() == s.value_heads &&
                  w.bias.numel() == s.value_heads &&
                  x.element_size() == static_cast<int64_t>(s.element),
              "gated_delta: weights of another shape, type or device");
}

}  // namespace

bool serves_states(at::Device device) { return device.is_cpu() || has_cuda_kernels(); }

at::Tensor gated_delta(const DeltaTokens& tokens, const DeltaWeights& weights,
                       const StateArena& states, int64_t layer,
                       std::span<const kernels::QuerySpan> spans,
                       std::span<const StateSpan> state_spans, StateSpanTables* tables) {
  const StateShape& s = states.shape();
  check_tokens(tokens, s);
  check_weights(weights, tokens.qkv, s);
  TORCH_CHECK(spans.size() == state_spans.size() && layer >= 0 && layer < s.layers,
              "gated_delta: ", state_spans.size(), " states of ", spans.size(), " sequences");
  if (tokens.qkv.is_cpu())
    return gated_delta_cpu(tokens, weights, states, layer, spans, state_spans);
  StateSpanTables own;
  return gated_delta_cuda(tokens, weights, states, layer, spans, state_spans,
                          tables ? *tables : own);
}

}  // namespace valora::ops
