#include "ops/linear.h"

#include <ATen/CPUGeneratorImpl.h>

#include "ops/cpu_dispatch.h"
#include "ops/gradient.h"
#include "ops/huge_memory.h"
#include "ops/parallel.h"
#include "ops/weight_panels.h"

namespace valora::ops {
namespace {

void check_input(const at::Tensor& x, const Weight& w) {
  TORCH_CHECK(x.dim() == 2 && x.size(1) == w.in(), "linear: x is ", x.sizes(), ", the weight [",
              w.out(), ", ", w.in(), "]");
  TORCH_CHECK(x.is_contiguous() && x.scalar_type() == w.dtype(), "linear: x must be contiguous ",
              w.dtype());
  TORCH_CHECK(!w.packed() || !wants_gradient(x),
              "linear: gradients do not flow through packed weights");
}

void check_segment(const at::Tensor& x, std::span<const Weight* const> weights,
                   const LoraSegment& segment) {
  TORCH_CHECK(0 <= segment.token_begin && segment.token_begin <= segment.token_end &&
                  segment.token_end <= x.size(0),
              "a segment of tokens [", segment.token_begin, ", ", segment.token_end,
              ") in a batch of ", x.size(0));
  for (size_t s = 0; s < weights.size(); ++s)
    if (const LoraWeight* part = segment.parts[s].weight)
      TORCH_CHECK(part->a.in() == weights[s]->in() && part->b.out() == weights[s]->out() &&
                      part->a.out() == part->b.in() && part->a.packed() == weights[s]->packed(),
                  "an adapter of [", part->b.out(), ", ", part->b.in(), "] x [", part->a.out(),
                  ", ", part->a.in(), "] on a weight of [", weights[s]->out(), ", ",
                  weights[s]->in(), "]");
}

template <typename T>
std::vector<kernels::LoraSegment<T>> panel_segments(std::span<const LoraSegment> segments,
                                                    size_t slices) {
  std::vector<kernels::LoraSegment<T>> result;
  result.reserve(segments.size());
  for (const LoraSegment& segment : segments) {
    kernels::LoraSegment<T>& target =
        result.emplace_back(kernels::LoraSegment<T>{segment.token_begin, segment.token_end, {}});
    for (size_t s = 0; s < slices; ++s)
      if (const LoraWeight* weight = segment.parts[s].weight)
        target.parts[s] = {panels_of<T>(weight->a), panels_of<T>(weight->b),
                           segment.parts[s].coefficient};
  }
  return result;
}

// ys: of each weight, of the weights' dtype or float; with kSiluMul of the first alone.
void project_panels(const at::Tensor& x, std::span<const Weight* const> weights,
                    std::span<const LoraSegment> segments, kernels::Combine combine,
                    std::span<const at::Tensor> ys) {
  dispatch_cpu(x, [&](auto t) {
    using T = decltype(t);
    std::array<kernels::Slice<T>, kMaxSlices> slices;
    for (size_t s = 0; s < weights.size(); ++s) {
      const Weight& w = *weights[s];
      slices[s] = {panels_of<T>(w), w.bias().defined() ? w.bias().const_data_ptr<float>() : nullptr,
                   nullptr, nullptr, w.out()};
      if (s >= ys.size()) continue;
      if (ys[s].scalar_type() == at::kFloat)
        slices[s].y_float = ys[s].mutable_data_ptr<float>();
      else
        slices[s].y = raw<T>(ys[s]);
      if constexpr (std::is_same_v<T, float>)
        if (combine == kernels::Combine::kSiluMul) slices[s].y = slices[s].y_float;
    }
    const auto low_rank = panel_segments<T>(segments, weights.size());
    kernels::project<T>(raw<T>(x), x.size(0), x.size(1), {slices.data(), weights.size()}, low_rank,
                        combine, torch_parallel());
  });
}

at::Tensor linear_aten(const at::Tensor& x, const Weight& w) {
  return at::linear(x, w.data(),
                    w.bias().defined() ? std::optional<at::Tensor>(w.bias()) : std::nullopt);
}

at::Tensor dropped(const at::Tensor& x, const Dropout& dropout) {
  if (dropout.probability <= 0) return x;
  const double kept = 1 - dropout.probability;
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(dropout.seed);
  return x * at::empty(x.sizes(), x.options().device(at::kCPU))
                 .bernoulli_(kept, generator)
                 .div_(kept)
                 .to(x.device());
}

at::Tensor project_aten(const at::Tensor& x, const Weight& w, std::span<const LoraSegment> segments,
                        size_t slice) {
  at::Tensor y = linear_aten(x, w);
  // Several segments may change one token: their sum is rounded once, not after each of them.
  if (segments.size() > 1) y = y.to(at::kFloat);
  for (const LoraSegment& segment : segments) {
    const LoraSegment::Part& part = segment.parts[slice];
    const int64_t tokens = segment.token_end - segment.token_begin;
    if (!part.weight || tokens == 0) continue;
    // A narrowed tensor that is written to costs a copy on the way back: only where it must be.
    const auto rows = [&](const at::Tensor& t) {
      return tokens == x.size(0) ? t : t.narrow(0, segment.token_begin, tokens);
    };
    const at::Tensor low = linear_aten(dropped(rows(x), part.dropout), part.weight->a);
    rows(y).add_(linear_aten(low, part.weight->b), part.coefficient);
  }
  return y.to(x.scalar_type());
}

void check(const at::Tensor& x, std::span<const Weight* const> weights,
           std::span<const LoraSegment> segments) {
  TORCH_CHECK(!weights.empty() && weights.size() <= kMaxSlices, "project: ", weights.size(),
              " weights");
  for (const Weight* w : weights) {
    check_input(x, *w);
    TORCH_CHECK(w->packed() == weights[0]->packed(), "project: weights in different forms");
  }
  for (const LoraSegment& segment : segments) check_segment(x, weights, segment);
}

}  // namespace

Weight::Weight(const at::Tensor& w, at::ScalarType dtype, at::Device device, const at::Tensor& bias)
    : out_(w.dim() == 2 ? w.size(0) : 0), in_(w.dim() == 2 ? w.size(1) : 0) {
  TORCH_CHECK(w.dim() == 2, "a linear's weight has two dimensions, not ", w.sizes());
  data_ = w.to(at::TensorOptions().dtype(dtype).device(device)).contiguous();
  packed_ = on_cpu_kernel(data_);
  if (bias.defined())
    bias_ = bias.to(at::TensorOptions().dtype(packed_ ? at::kFloat : dtype).device(device))
                .contiguous();
  if (!packed_) return;
  dispatch_cpu(data_, [&](auto t) {
    using T = decltype(t);
    at::Tensor panels = huge_zeros(kernels::packed_elements<T>(out_, in_), dtype);
    kernels::pack_panels<T>(raw<T>(data_), out_, in_, raw<T>(panels), torch_parallel());
    data_ = panels;
  });
}

void Weight::refill(const at::Tensor& w) {
  TORCH_CHECK(w.dim() == 2 && w.size(0) == out_ && w.size(1) == in_, "values of ", w.sizes(),
              " for a weight of [", out_, ", ", in_, "]");
  const at::Tensor values = w.to(data_.options()).contiguous();
  if (!packed_)
    data_.copy_(values);
  else
    dispatch_cpu(data_, [&](auto t) {
      using T = decltype(t);
      kernels::pack_panels<T>(raw<T>(values), out_, in_, raw<T>(data_), torch_parallel());
    });
}

Weight Weight::plain(at::Tensor w, at::Tensor bias) {
  TORCH_CHECK(w.dim() == 2, "a linear's weight has two dimensions, not ", w.sizes());
  Weight weight;
  weight.out_ = w.size(0);
  weight.in_ = w.size(1);
  weight.data_ = std::move(w);
  weight.bias_ = std::move(bias);
  return weight;
}

Weight Weight::with_data(at::Tensor data) const {
  TORCH_CHECK(
      data.sizes() == data_.sizes() && data.scalar_type() == dtype() && data.is_contiguous(),
      "other values of ", data.sizes(), " for a weight of ", data_.sizes());
  Weight other = *this;
  other.data_ = std::move(data);
  return other;
}

at::Tensor Weight::unpacked() const {
  if (!packed_) return data_;
  at::Tensor w = at::empty({out_, in_}, data_.options());
  dispatch_cpu(data_, [&](auto t) {
    kernels::unpack_panels<decltype(t)>(panels_of<decltype(t)>(*this), raw<decltype(t)>(w));
  });
  return w;
}

std::vector<at::Tensor> project(const at::Tensor& x, std::span<const Weight* const> weights,
                                std::span<const LoraSegment> segments) {
  check(x, weights, segments);
  std::vector<at::Tensor> ys;
  for (size_t s = 0; s < weights.size(); ++s)
    ys.push_back(weights[s]->packed() ? at::empty({x.size(0), weights[s]->out()}, x.options())
                                      : project_aten(x, *weights[s], segments, s));
  if (weights[0]->packed()) project_panels(x, weights, segments, kernels::Combine::kNone, ys);
  return ys;
}

at::Tensor linear(const at::Tensor& x, const Weight& w, std::span<const LoraSegment> segments) {
  const Weight* one = &w;
  return project(x, {&one, 1}, segments)[0];
}

at::Tensor gated(const at::Tensor& x, const Weight& gate, const Weight& up,
                 std::span<const LoraSegment> segments) {
  const Weight* both[] = {&gate, &up};
  check(x, both, segments);
  TORCH_CHECK(gate.out() == up.out(), "gated: a gate of ", gate.out(), " outputs, ", up.out(),
              " to be gated");
  if (!gate.packed())
    return at::silu(project_aten(x, gate, segments, 0)) * project_aten(x, up, segments, 1);
  const at::Tensor y = at::empty({x.size(0), gate.out()}, x.options());
  project_panels(x, both, segments, kernels::Combine::kSiluMul, {&y, 1});
  return y;
}

at::Tensor linear_float(const at::Tensor& x, const Weight& w) {
  const Weight* one = &w;
  check(x, {&one, 1}, {});
  if (!w.packed()) return linear_aten(x, w).to(at::kFloat);
  const at::Tensor y = at::empty({x.size(0), w.out()}, x.options().dtype(at::kFloat));
  project_panels(x, {&one, 1}, {}, kernels::Combine::kNone, {&y, 1});
  return y;
}

}  // namespace valora::ops
