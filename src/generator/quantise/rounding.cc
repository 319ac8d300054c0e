#include "generator/quantise/rounding.h"

#include <algorithm>
#include <cmath>

#include "ops/device/parallel.h"
#include "ops/weights/quantised_tensor.h"

namespace valora::generator {
namespace {

// Share of the mean diagonal moment that is added to the diagonal: inputs that hardly occur must
// not absorb large errors of others.
constexpr double kDamping = 0.01;
constexpr int64_t kBlock = 128;  // inputs whose errors are passed on to later inputs together

// float [out, groups], rounded to the dtype in which they are stored.
at::Tensor scales_of(const at::Tensor& w, const Grid& grid) {
  at::Tensor scales =
      ops::quantise(w, {grid.bits, grid.group}).scales.to(grid.scales).to(at::kFloat);
  TORCH_CHECK(at::isfinite(scales).all().item<bool>(),
              "has values so large that their scales are not finite in the checkpoint's data type");
  return scales;
}

// The integers that represent `values` at these scales, centred at zero, as float. A scale may be 0
// or negative.
at::Tensor integers_of(const at::Tensor& values, const at::Tensor& scales, int bits) {
  const double most = (1 << (bits - 1)) - 1;
  const at::Tensor at_scale = at::where(scales == 0, at::zeros_like(values), values / scales);
  return at_scale.round().clamp(-most - 1, most);
}

ops::QuantisedTensor quantised(const at::Tensor& integers, const at::Tensor& scales,
                               const Grid& grid) {
  const int middle = 1 << (grid.bits - 1);
  return {(integers + middle).to(at::kByte).contiguous(), grid.bits, scales.contiguous(),
          at::full(scales.sizes(), middle, at::kByte), grid.group};
}

at::Tensor per_input(const at::Tensor& scales, int64_t group) {
  return scales.repeat_interleave(group, 1);
}

// The upper Cholesky factor of the inverse of the damped moments.
at::Tensor inverse_factor(at::Tensor moments) {
  const at::Tensor diagonal = moments.diagonal();
  const double mean = diagonal.mean().item<double>();
  diagonal.add_(mean > 0 ? kDamping * mean : 1.0);
  const at::Tensor inverse = at::cholesky_inverse(at::linalg_cholesky(moments));
  return at::linalg_cholesky(inverse, /*upper=*/true).contiguous();
}

// Inputs [first, last) of a group, in the block [begin, end).
struct Inputs {
  int64_t first, last, begin, end;
};

// Rounds these inputs, one after the other, for all outputs. Each input's error, divided by its
// diagonal factor, is passed on to the later inputs in the block.
void round_inputs(const Inputs& at, const at::Tensor& factor, const at::Tensor& scales, int bits,
                  at::Tensor& left, at::Tensor& integers, at::Tensor& errors) {
  const int64_t in = left.size(1);
  const auto most = static_cast<float>((1 << (bits - 1)) - 1);
  const float* const step = factor.const_data_ptr<float>();
  const float* const scale = scales.const_data_ptr<float>();
  auto* const values = left.mutable_data_ptr<float>();
  auto* const chosen = integers.mutable_data_ptr<float>();
  auto* const error = errors.mutable_data_ptr<float>();
  ops::torch_parallel()(0, left.size(0), 8, [&](int64_t from, int64_t to) {
    for (int64_t o = from; o < to; ++o) {
      float* const row = values + o * in;
      for (int64_t i = at.first; i < at.last; ++i) {
        const float* const factors = step + i * in;
        const float integer =
            scale[o] == 0 ? 0 : std::clamp(std::nearbyint(row[i] / scale[o]), -most - 1, most);
        const float off = (row[i] - integer * scale[o]) / factors[i];
        chosen[o * in + i] = integer;
        error[o * kBlock + i - at.begin] = off;
        for (int64_t j = i + 1; j < at.end; ++j) row[j] -= off * factors[j];
      }
    }
  });
}

}  // namespace

ops::QuantisedTensor round_to_nearest(const at::Tensor& w, const Grid& grid) {
  const at::Tensor scales = scales_of(w, grid);
  return quantised(integers_of(w, per_input(scales, grid.group), grid.bits), scales, grid);
}

ops::QuantisedTensor round_by_moments(const at::Tensor& w, const at::Tensor& moments,
                                      const Grid& grid) {
  const int64_t out = w.size(0), in = w.size(1);
  const at::Tensor factor = inverse_factor(moments.to(at::kDouble)).to(at::kFloat);
  at::Tensor left = w.to(at::kFloat).clone();  // target values of the inputs still to be rounded
  at::Tensor integers = at::empty({out, in}, at::kFloat), errors = at::empty({out, kBlock});
  at::Tensor scales = at::empty({out, in / grid.group}, at::kFloat);
  for (int64_t begin = 0; begin < in; begin += kBlock) {
    const int64_t end = std::min(in, begin + kBlock);
    for (int64_t first = begin; first < end;) {
      const int64_t group = first / grid.group, last = std::min(end, (group + 1) * grid.group);
      if (first % grid.group == 0)
        scales.select(1, group).copy_(
            scales_of(left.narrow(1, first, grid.group).contiguous(), grid).select(1, 0));
      round_inputs({first, last, begin, end}, factor, scales.select(1, group).contiguous(),
                   grid.bits, left, integers, errors);
      first = last;
    }
    if (end < in)
      left.narrow(1, end, in - end)
          .sub_(at::mm(errors.narrow(1, 0, end - begin),
                       factor.narrow(0, begin, end - begin).narrow(1, end, in - end)));
  }
  return quantised(integers, scales, grid);
}

}  // namespace valora::generator
