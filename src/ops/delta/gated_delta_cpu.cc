#include "kernels/cpu/delta/gated_delta.h"

#include <vector>

#include "ops/delta/gated_delta_targets.h"
#include "ops/device/cpu_types.h"
#include "ops/device/parallel.h"

namespace valora::ops {
namespace {

// Pointers to the parts of a layer's states: the heads' matrices and the window's rows of each.
template <typename T>
class Parts {
 public:
  Parts(const StateArena& states, int64_t layer, size_t count)
      : states_(states), layer_(layer), shape_(states.shape()) {
    // So that pointers to the lists stay valid.
    heads_.reserve(count * static_cast<size_t>(shape_.value_heads));
    rows_.reserve(count * static_cast<size_t>(shape_.taps - 1));
  }
  // blocks: null for no state.
  kernels::DeltaState<T, float> add(const int32_t* blocks) {
    if (!blocks) return {};
    const size_t head = heads_.size(), row = rows_.size();
    for (int64_t i = 0; i < shape_.value_heads; ++i)
      heads_.push_back(states_.head(blocks, layer_, i));
    for (int64_t i = 0; i + 1 < shape_.taps; ++i)
      rows_.push_back(static_cast<T*>(states_.row(blocks, layer_, i)));
    return {heads_.data() + head, rows_.data() + row};
  }

 private:
  const StateArena& states_;
  int64_t layer_;
  const StateShape& shape_;
  std::vector<float*> heads_;
  std::vector<T*> rows_;
};

template <typename T>
std::vector<kernels::DeltaSpan<T>> spans_of(std::span<const kernels::QuerySpan> spans,
                                            std::span<const StateSpan> states, Parts<T>& parts) {
  std::vector<kernels::DeltaSpan<T>> result;
  for (size_t i = 0; i < spans.size(); ++i) {
    kernels::DeltaSpan<T> span{.begin = spans[i].begin, .count = spans[i].queries};
    const auto before = parts.add(states[i].from);
    span.from = {before.heads, before.window};
    span.to = parts.add(states[i].to);
    for (size_t k = 0; k < span.kept.size(); ++k)
      span.kept[k] = {parts.add(states[i].kept[k].blocks), states[i].kept[k].after};
    result.push_back(span);
  }
  return result;
}

constexpr size_t kStatesOfSpan = 2 + StateSpan::kMostKept;

}  // namespace

at::Tensor gated_delta_cpu(const DeltaTokens& tokens, const DeltaWeights& weights,
                           const StateArena& states, int64_t layer,
                           std::span<const kernels::QuerySpan> spans,
                           std::span<const StateSpan> state_spans) {
  const StateShape& s = states.shape();
  const at::Tensor out =
      at::empty({tokens.qkv.size(0), s.value_heads * s.value_dim}, tokens.qkv.options());
  with_cpu_type(tokens.qkv, [&](auto t) {
    using T = decltype(t);
    Parts<T> parts(states, layer, kStatesOfSpan * spans.size());
    const std::vector<kernels::DeltaSpan<T>> found = spans_of(spans, state_spans, parts);
    const kernels::DeltaInputs<T> inputs{.qkv = raw<T>(tokens.qkv),
                                         .ld_qkv = tokens.qkv.stride(0),
                                         .conv = raw<T>(weights.conv),
                                         .a = raw<T>(tokens.a),
                                         .b = raw<T>(tokens.b),
                                         .ld_a = tokens.a.stride(0),
                                         .ld_b = tokens.b.stride(0),
                                         .rate = weights.rate.const_data_ptr<float>(),
                                         .bias = weights.bias.const_data_ptr<float>(),
                                         .z = raw<T>(tokens.z),
                                         .ld_z = tokens.z.stride(0),
                                         .weight = raw<T>(weights.norm),
                                         .eps = static_cast<float>(weights.eps)};
    kernels::gated_delta<T>(s, inputs, found, raw<T>(out), torch_parallel());
  });
  return out;
}

}  // namespace valora::ops
