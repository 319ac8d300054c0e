#include "models/decoder/delta_net.h"

#include "models/decoder/layers.h"
#include "models/quantised/stored_linear.h"

namespace valora::models {
namespace {

constexpr char kMixer[] = "linear_attn.";

}  // namespace

kernels::StateShape state_shape(const StateSpec& s, at::ScalarType dtype) {
  return {s.layers,      s.channels(), s.taps,      s.key_heads,
          s.value_heads, s.key_dim,    s.value_dim, c10::elementSize(dtype)};
}

void add_delta_modules(const StateSpec& s, int64_t hidden, const std::string& layer, int64_t index,
                       std::vector<adapters::Module>& modules) {
  using enum adapters::Split;
  // Ranks have whole heads of keys, each with its heads of values.
  const auto add = [&](const char* name, int64_t in, int64_t out, adapters::Split split,
                       std::array<int64_t, 3> sections = {1}) {
    modules.push_back({layer + kMixer + name,
                       in,
                       out,
                       index,
                       false,
                       adapters::ModuleKind::kLinear,
                       {split, s.key_heads, sections}});
  };
  const int64_t keys = s.key_heads * s.key_dim;
  add("in_proj_qkv", hidden, s.channels(), kOutputs, {keys, keys, s.values()});
  add("in_proj_z", hidden, s.values(), kOutputs);
  add("in_proj_b", hidden, s.value_heads, kOutputs);
  add("in_proj_a", hidden, s.value_heads, kOutputs);
  add("out_proj", s.values(), hidden, kInputs);
  modules.push_back({layer + kMixer + "conv1d", s.taps, s.channels(), index, false,
                     adapters::ModuleKind::kOther});
}

DeltaNet::DeltaNet(Weights& weights, const adapters::ModuleTable& modules, const std::string& layer,
                   const LayerConfig& c)
    : shape_(state_shape(c.delta->part(weights.shard().of), weights.dtype())) {
  const std::string prefix = layer + kMixer;
  const StateSpec& s = *c.delta;
  const auto linear = [&](const char* name) {
    return table_linear(weights, modules, prefix + name, false);
  };
  qkv_ = linear("in_proj_qkv");
  z_ = linear("in_proj_z");
  b_ = linear("in_proj_b");
  a_ = linear("in_proj_a");
  out_ = linear("out_proj");
  place_adjacent_linears({&qkv_, &z_});
  place_adjacent_linears({&b_, &a_});
  // The reference loads both in the model's dtype and computes with them in float.
  const auto of_heads = [&](const char* name) {
    return rows_of(weights.on_each(prefix + name, {s.value_heads}), a_.slice().has.out)
        .to(at::kFloat);
  };
  const at::Tensor convolution = rows_of(
      weights.on_each(prefix + "conv1d.weight", {s.channels(), 1, s.taps}), qkv_.slice().has.out);
  weights_ = {convolution.squeeze(1).t().contiguous(), of_heads("A_log").exp(), of_heads("dt_bias"),
              weights.on_each(prefix + "norm.weight", {s.value_dim}), c.norm_eps};
}

at::Tensor DeltaNet::operator()(const at::Tensor& x, int64_t place, const Batch& batch) const {
  const auto wide = project(x, {&qkv_, &z_}, batch.adaptation),
             rates = project(x, {&b_, &a_}, batch.adaptation);
  const ops::DeltaTokens tokens{wide[0], wide[1], rates[0], rates[1]};
  const at::Tensor mixed =
      batch.states ? ops::gated_delta(tokens, weights_, *batch.states, place, batch.spans,
                                      batch.state_spans, &batch.state_tables)
                   : ops::sequence_gated_delta(tokens, weights_, shape_, batch.spans);
  return out_(mixed, batch.adaptation);
}

}  // namespace valora::models
