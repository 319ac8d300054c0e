#include "kernels/cpu/delta/gated_delta.h"

#include <vector>

#include "kernels/cpu/delta/short_conv.h"
#include "ops/cpu_types.h"
#include "ops/gated_delta_targets.h"
#include "ops/parallel.h"

namespace valora::ops {
namespace {

// Lists of pointers to the parts of states, one list after another.
template <typename P>
class PartLists {
 public:
  explicit PartLists(size_t lists, int64_t parts) : parts_(static_cast<size_t>(parts)) {
    pointers_.reserve(lists * parts_);  // so that pointers to the lists stay valid
  }
  template <typename Find>
  P* const* add(const int32_t* blocks, const Find& find) {
    if (!blocks) return nullptr;
    const size_t begin = pointers_.size();
    for (size_t part = 0; part < parts_; ++part)
      pointers_.push_back(static_cast<P*>(find(blocks, static_cast<int64_t>(part))));
    return pointers_.data() + begin;
  }

 private:
  size_t parts_;
  std::vector<P*> pointers_;
};

// A kernel's spans, of type Span, for states with parts of type P.
template <typename Span, typename P, typename Find>
std::vector<Span> spans_of(std::span<const kernels::QuerySpan> spans,
                           std::span<const StateSpan> states, const Find& find,
                           PartLists<P>& lists) {
  std::vector<Span> result;
  for (size_t i = 0; i < spans.size(); ++i) {
    Span span{.begin = spans[i].begin, .count = spans[i].queries};
    span.from = lists.add(states[i].from, find);
    span.to = lists.add(states[i].to, find);
    for (size_t k = 0; k < span.kept.size(); ++k)
      span.kept[k] = {lists.add(states[i].kept[k].blocks, find), states[i].kept[k].after};
    result.push_back(span);
  }
  return result;
}

constexpr size_t kListsOfSpan = 2 + StateSpan::kMostKept;

template <typename T>
at::Tensor convolved(const DeltaTokens& tokens, const DeltaWeights& weights,
                     const StateArena& states, int64_t layer,
                     std::span<const kernels::QuerySpan> spans,
                     std::span<const StateSpan> state_spans) {
  const StateShape& s = states.shape();
  const at::Tensor out = at::empty({tokens.qkv.size(0), s.channels}, tokens.qkv.options());
  PartLists<T> lists(kListsOfSpan * spans.size(), s.taps - 1);
  const auto found = spans_of<kernels::ConvSpan<T>>(
      spans, state_spans,
      [&](const int32_t* blocks, int64_t row) { return states.row(blocks, layer, row); }, lists);
  kernels::short_conv<T>(raw<T>(tokens.qkv), tokens.qkv.stride(0),
                         {raw<T>(weights.conv), s.taps, s.channels}, found, raw<T>(out), s.channels,
                         torch_parallel());
  return out;
}

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
    const at::Tensor qkv = convolved<T>(tokens, weights, states, layer, spans, state_spans);
    PartLists<float> lists(kListsOfSpan * spans.size(), s.value_heads);
    const auto found = spans_of<kernels::DeltaSpan>(
        spans, state_spans,
        [&](const int32_t* blocks, int64_t head) { return states.head(blocks, layer, head); },
        lists);
    const kernels::DeltaInputs<T> inputs{.qkv = raw<T>(qkv),
                                         .ld_qkv = qkv.stride(0),
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
