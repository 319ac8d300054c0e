#include "lab/ops/elementwise_bench.h"

#include <fmt/format.h>

#include "lab/ops/random_tensors.h"
#include "ops/elementwise/elementwise.h"

namespace valora::bench {
namespace {

constexpr double kElementwiseTolerance = 0.02, kEps = 1e-6;
constexpr double kElementBytes = 2;  // bytes per bf16

// `passes` over `elements` bf16 values. Counts memory traffic only if they exceed the caches.
Work work_of(double passes, int64_t elements) {
  const double bytes = passes * kElementBytes * static_cast<double>(elements);
  return {bytes > static_cast<double>(last_level_cache()) ? bytes : 0};
}

Measurement measure_rms_norm(Bench& bench, int64_t tokens, int64_t width) {
  const at::Tensor x = normal_tensor({tokens, width}, at::kBFloat16, 1, 1),
                   weight = normal_tensor({width}, at::kBFloat16, 1, 2);
  return compete(bench, work_of(2, x.numel()),
                 {pure(kOurs, [&] { return ops::rms_norm(x, weight, kEps); }),
                  pure("aten", [&] { return at::rms_norm(x, {width}, weight, kEps); })},
                 kElementwiseTolerance);
}

// The values of x grow by the residual in every run.
Measurement measure_add_rms_norm(Bench& bench, int64_t tokens, int64_t width) {
  const at::Tensor x = normal_tensor({tokens, width}, at::kBFloat16, 1, 1),
                   residual = normal_tensor({tokens, width}, at::kBFloat16, 1, 3);
  const at::Tensor weight = normal_tensor({width}, at::kBFloat16, 1, 2);
  at::Tensor stream = x.clone(), other = x.clone();
  const auto ours = [&] { return ops::add_rms_norm(stream, residual, weight, kEps); };
  const auto aten = [&] { return at::rms_norm(other.add_(residual), {width}, weight, kEps); };
  const auto fresh = [&](at::Tensor& target, const auto& run) {
    target.copy_(x);
    return run();
  };
  return compete(bench, work_of(4, x.numel()),
                 {{kOurs, [&] { ours(); }, [&] { return fresh(stream, ours); }},
                  {"aten", [&] { aten(); }, [&] { return fresh(other, aten); }}},
                 kElementwiseTolerance);
}

// x · cos + rotated(x) · sin, as in transformers.
at::Tensor rotate_aten(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  const int64_t half = x.size(2) / 2;
  return x * cos + at::cat({x.narrow(2, half, half).neg(), x.narrow(2, 0, half)}, 2) * sin;
}

Measurement measure_rotary(Bench& bench, int64_t tokens, int64_t heads, int64_t dim) {
  const at::Tensor x = normal_tensor({tokens, heads, dim}, at::kBFloat16, 1, 1),
                   angle = normal_tensor({tokens, dim / 2}, at::kFloat, 1, 2);
  const at::Tensor cos = at::cos(angle), sin = at::sin(angle);
  const auto wide = [](const at::Tensor& half) {
    return at::cat({half, half}, 1).unsqueeze(1).to(at::kBFloat16);
  };
  const at::Tensor wide_cos = wide(cos), wide_sin = wide(sin);
  at::Tensor rotated = x.clone();
  const auto ours = [&] {
    rotated.copy_(x);
    ops::rotate_half(rotated, cos, sin);
    return rotated.clone();
  };
  return compete(bench, work_of(2, x.numel()),
                 {{kOurs, [&] { ops::rotate_half(rotated, cos, sin); }, ours},
                  pure("aten", [&] { return rotate_aten(x, wide_cos, wide_sin); })},
                 kElementwiseTolerance);
}

using Measure = Measurement (*)(Bench&, int64_t, int64_t);

Shape row_shape(const char* operation, Measure measure, int64_t tokens, int64_t width) {
  return {operation,
          fmt::format("tokens {} width {}", tokens, width),
          {{"tokens", tokens}, {"width", width}},
          [=](Bench& bench) { return measure(bench, tokens, width); }};
}

Shape rotary_shape(int64_t tokens, int64_t heads, int64_t dim) {
  return {"rotary",
          fmt::format("tokens {} heads {}x{}", tokens, heads, dim),
          {{"tokens", tokens}, {"heads", heads}, {"dim", dim}},
          [=](Bench& bench) { return measure_rotary(bench, tokens, heads, dim); }};
}

}  // namespace

std::vector<Shape> elementwise_shapes(bool quick) {
  std::vector<Shape> shapes;
  for (const int64_t tokens :
       quick ? std::vector<int64_t>{8, 128} : std::vector<int64_t>{1, 8, 128, 1024}) {
    for (const int64_t width :
         quick ? std::vector<int64_t>{896} : std::vector<int64_t>{896, 3584}) {
      shapes.push_back(row_shape("rms_norm", measure_rms_norm, tokens, width));
      shapes.push_back(row_shape("add_rms_norm", measure_add_rms_norm, tokens, width));
    }
    shapes.push_back(rotary_shape(tokens, 14, 64));
    if (!quick) shapes.push_back(rotary_shape(tokens, 28, 128));
  }
  return shapes;
}

}  // namespace valora::bench
