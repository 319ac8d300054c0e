// The differentiable form for training: solves the updates of a whole chunk of tokens together, so
// that a sequence needs few operations (transformers: torch_chunk_gated_delta_rule).
#include <ATen/ops/conv1d.h>
#include <ATen/ops/linalg_solve_triangular.h>

#include <cmath>
#include <vector>

#include "ops/delta/gated_delta.h"

namespace valora::ops {
namespace {

constexpr int64_t kChunk = 64;

// x: [n, heads, dim] → float, normalised to unit length
at::Tensor unit_length(const at::Tensor& x) {
  const at::Tensor wide = x.to(at::kFloat);
  return wide * at::rsqrt(wide.pow(2).sum(-1, true) + 1e-6);
}

// Repeats query or key heads for each value head: [n, key_heads, dim] → [value_heads, n, dim]
at::Tensor for_values(const at::Tensor& x, const StateShape& s) {
  return x.repeat_interleave(s.value_heads / s.key_heads, 1).transpose(0, 1);
}

// Queries, keys, values [heads, n, dim]; logarithms of decays, and rates, [heads, n]; all float.
struct Rule {
  at::Tensor q, k, v, decay, rate;
  Rule part(int64_t begin, int64_t end) const {
    const auto of = [&](const at::Tensor& x) { return x.slice(1, begin, end); };
    return {of(q), of(k), of(v), of(decay), of(rate)};
  }
};

// One chunk. state: [heads, key_dim, value_dim], updated. → [heads, n, value_dim]
at::Tensor run_chunk(const Rule& r, at::Tensor& state) {
  const at::Tensor decay = r.decay.cumsum(1);  // logarithm of the decay since the chunk's start
  const at::Tensor rates = r.rate.unsqueeze(2), keys = r.k * rates;
  const at::Tensor later = at::ones({r.q.size(1), r.q.size(1)}, at::kBool).triu(1);
  const at::Tensor between = (decay.unsqueeze(2) - decay.unsqueeze(1))
                                 .masked_fill(later.to(decay.device()), -INFINITY)
                                 .exp();
  const at::Tensor system = at::matmul(keys, r.k.transpose(1, 2)) * between;
  const at::Tensor values = at::linalg_solve_triangular(
      system, r.v * rates - at::matmul(keys * decay.exp().unsqueeze(2), state),
      /*upper=*/false, /*left=*/true, /*unitriangular=*/true);
  const at::Tensor out = at::matmul(r.q * decay.exp().unsqueeze(2), state) +
                         at::matmul(at::matmul(r.q, r.k.transpose(1, 2)) * between, values);
  const at::Tensor last = decay.slice(1, -1), rest = (last - decay).exp().unsqueeze(2);
  state = state * last.exp().unsqueeze(2) + at::matmul((r.k * rest).transpose(1, 2), values);
  return out;
}

// One sequence. → [n, value_heads · value_dim]
at::Tensor run_sequence(const DeltaTokens& tokens, const DeltaWeights& w, const StateShape& s) {
  const int64_t n = tokens.qkv.size(0);
  const at::Tensor padded = at::constant_pad_nd(tokens.qkv.t().unsqueeze(0), {s.taps - 1, 0});
  const at::Tensor qkv = at::silu(at::conv1d(padded, w.conv.t().unsqueeze(1), {}, 1,
                                             at::IntArrayRef{0}, 1, s.channels))
                             .squeeze(0)
                             .t();
  const int64_t keys = s.key_heads * s.key_dim;
  const auto parts = qkv.split_with_sizes({keys, keys, s.value_heads * s.value_dim}, 1);
  const auto heads = [&](const at::Tensor& x) { return x.reshape({n, -1, s.key_dim}); };
  const at::Tensor decay = -w.rate * at::softplus(tokens.a.to(at::kFloat) + w.bias);
  const Rule rule{for_values(unit_length(heads(parts[0])), s) / std::sqrt(double(s.key_dim)),
                  for_values(unit_length(heads(parts[1])), s),
                  parts[2].reshape({n, s.value_heads, s.value_dim}).to(at::kFloat).transpose(0, 1),
                  decay.t(), at::sigmoid(tokens.b.to(at::kFloat)).t()};
  at::Tensor state = at::zeros({s.value_heads, s.key_dim, s.value_dim}, rule.q.options());
  std::vector<at::Tensor> outputs;
  for (int64_t begin = 0; begin < n; begin += kChunk)
    outputs.push_back(run_chunk(rule.part(begin, std::min(n, begin + kChunk)), state));
  const at::Tensor out = at::cat(outputs, 1).transpose(0, 1);  // [n, heads, value_dim]
  const at::Tensor z = tokens.z.reshape({n, s.value_heads, s.value_dim}).to(at::kFloat);
  const at::Tensor normed = out * at::rsqrt(out.pow(2).mean(-1, true) + w.eps);
  return (normed * w.norm.to(at::kFloat) * at::silu(z))
      .to(tokens.qkv.scalar_type())
      .reshape({n, s.value_heads * s.value_dim});
}

}  // namespace

at::Tensor sequence_gated_delta(const DeltaTokens& tokens, const DeltaWeights& weights,
                                const StateShape& shape,
                                std::span<const kernels::QuerySpan> spans) {
  std::vector<at::Tensor> outputs;
  for (const kernels::QuerySpan& span : spans) {
    const auto of = [&](const at::Tensor& x) { return x.narrow(0, span.begin, span.queries); };
    outputs.push_back(
        run_sequence({of(tokens.qkv), of(tokens.z), of(tokens.b), of(tokens.a)}, weights, shape));
  }
  return outputs.size() == 1 ? outputs.front() : at::cat(outputs);
}

}  // namespace valora::ops
