#include "ops/linear.h"

#include <vector>

#include "kernels/cpu/gemm_bf16.h"
#include "ops/cpu_dispatch.h"
#include "ops/parallel.h"

namespace valora::ops {
namespace {

using kernels::bf16;

kernels::Panels panels_of(const Weight& w) { return {raw<bf16>(w.data()), w.out(), w.in()}; }

void check_input(const at::Tensor& x, const Weight& w) {
  TORCH_CHECK(x.dim() == 2 && x.size(1) == w.in(), "linear: x is ", x.sizes(), ", the weight [", w.out(), ", ", w.in(), "]");
  TORCH_CHECK(x.is_contiguous() && x.scalar_type() == w.dtype(), "linear: x must be contiguous ", w.dtype());
}

template <typename Y>
at::Tensor packed_linear(const at::Tensor& x, const Weight& w, const at::Tensor& bias, at::ScalarType result) {
  at::Tensor y = at::empty({x.size(0), w.out()}, x.options().dtype(result));
  const at::Tensor b = bias.defined() ? bias.to(at::kFloat) : at::Tensor();
  kernels::gemm_bf16(raw<bf16>(x), x.size(0), w.in(), panels_of(w), b.defined() ? b.const_data_ptr<float>() : nullptr,
                     raw<Y>(y), w.out(), torch_parallel());
  return y;
}

void add_segment(at::Tensor& y, const at::Tensor& x, const LoraSegment& s) {
  const int64_t tokens = s.token_end - s.token_begin;
  at::Tensor part = y.narrow(0, s.token_begin, tokens);
  const at::Tensor low = linear(x.narrow(0, s.token_begin, tokens), s.weight->a);
  part.add_(linear(low, s.weight->b), s.coefficient);
}

// Segments that touch the same tokens go into successive calls; within one call they are disjoint.
void add_packed(at::Tensor& y, const at::Tensor& x, std::span<const LoraSegment> segments) {
  std::vector<kernels::LoraRun> runs;
  runs.reserve(segments.size());
  const auto flush = [&] {
    kernels::lora_bf16(raw<bf16>(x), x.size(1), raw<bf16>(y), y.size(1), runs, torch_parallel());
    runs.clear();
  };
  for (const LoraSegment& s : segments) {
    if (!runs.empty() && s.token_begin < runs.back().token_end) flush();
    runs.push_back({s.token_begin, s.token_end, panels_of(s.weight->a), panels_of(s.weight->b), s.coefficient});
  }
  if (!runs.empty()) flush();
}

}  // namespace

Weight::Weight(const at::Tensor& w, at::ScalarType dtype, at::Device device) {
  TORCH_CHECK(w.dim() == 2, "a linear's weight has two dimensions, not ", w.sizes());
  out_ = w.size(0);
  in_ = w.size(1);
  data_ = w.to(at::TensorOptions().dtype(dtype).device(device)).contiguous();
  packed_ = device.is_cpu() && dtype == at::kBFloat16;
  if (!packed_) return;
  at::Tensor panels = at::empty({kernels::packed_elements(out_, in_)}, data_.options());
  kernels::pack_panels(raw<bf16>(data_), out_, in_, raw<bf16>(panels));
  data_ = panels;
}

at::Tensor linear(const at::Tensor& x, const Weight& w, const at::Tensor& bias) {
  check_input(x, w);
  if (w.packed()) return packed_linear<bf16>(x, w, bias, at::kBFloat16);
  return at::linear(x, w.data(), bias.defined() ? std::optional<at::Tensor>(bias) : std::nullopt);
}

at::Tensor linear_float(const at::Tensor& x, const Weight& w) {
  check_input(x, w);
  if (w.packed()) return packed_linear<float>(x, w, {}, at::kFloat);
  return at::linear(x, w.data()).to(at::kFloat);
}

void add_lora(at::Tensor& y, const at::Tensor& x, std::span<const LoraSegment> segments) {
  if (segments.empty()) return;
  const Weight& a = segments.front().weight->a;
  TORCH_CHECK(y.is_contiguous() && x.is_contiguous() && y.size(0) == x.size(0) && x.size(1) == a.in() &&
                  y.size(1) == segments.front().weight->b.out(),
              "add_lora: x is ", x.sizes(), ", y ", y.sizes());
  if (a.packed()) return add_packed(y, x, segments);
  for (const LoraSegment& s : segments) add_segment(y, x, s);
}

}  // namespace valora::ops
