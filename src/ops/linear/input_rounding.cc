#include "ops/linear/input_rounding.h"

namespace valora::ops {
namespace {

struct Range {
  double low, high;
};

Range range_of(InputRounding::Grid grid) {
  constexpr double kLargestFp8 = 448;
  if (grid == InputRounding::Grid::kInt8) return {-128, 127};
  return {-kLargestFp8, kLargestFp8};
}

at::Tensor scales_of(const at::Tensor& x, const at::Tensor& largest, const InputRounding& rounding,
                     const Range& range) {
  if (rounding.scale != 0) return at::full({1, 1}, rounding.scale, x.options());
  const at::Tensor scales =
      (largest.defined() ? largest : largest_inputs(x)) / ((range.high - range.low) / 2);
  return scales.masked_fill(scales == 0, 1);
}

}  // namespace

at::Tensor largest_inputs(const at::Tensor& x) { return x.to(at::kFloat).abs().amax({1}, true); }

at::Tensor rounded_inputs(const at::Tensor& x, const InputRounding& rounding,
                          const at::Tensor& largest) {
  const Range range = range_of(rounding.grid);
  const at::Tensor wide = x.to(at::kFloat), scales = scales_of(wide, largest, rounding, range);
  at::Tensor steps = wide / scales;
  if (rounding.grid == InputRounding::Grid::kInt8)
    steps.round_().clamp_(range.low, range.high);
  else
    steps = steps.clamp_(range.low, range.high).to(at::kFloat8_e4m3fn).to(at::kFloat);
  return steps.mul_(scales).to(x.scalar_type());
}

}  // namespace valora::ops
