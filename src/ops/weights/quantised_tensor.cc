#include "ops/weights/quantised_tensor.h"

#include <algorithm>
#include <numeric>

#include "kernels/types/packed.h"
#include "ops/device/parallel.h"

namespace valora::ops {
namespace {

void check_tensor(const at::Tensor& t, const char* name, at::ScalarType dtype,
                  at::IntArrayRef sizes) {
  TORCH_CHECK(t.defined() && t.is_cpu() && t.scalar_type() == dtype && t.sizes() == sizes &&
                  t.is_contiguous(),
              "a quantised weight needs ", name, " as contiguous ", dtype, " ", sizes);
}

}  // namespace

bool QuantisedTensor::symmetric() const {
  const uint8_t middle = static_cast<uint8_t>(kernels::middle_of(bits));
  const auto* zero = zeros.const_data_ptr<uint8_t>();
  return std::all_of(zero, zero + zeros.numel(), [&](uint8_t z) { return z == middle; });
}

void QuantisedTensor::check() const {
  TORCH_CHECK(kernels::is_packed(bits), "a quantised weight of ", bits, " bits");
  TORCH_CHECK(values.defined() && values.dim() == 2, "a quantised weight has two dimensions");
  TORCH_CHECK(group > 0 && group <= std::max<int64_t>(in(), 1), "groups of ", group, " of ", in(),
              " inputs");
  check_tensor(values, "values", at::kByte, {out(), in()});
  check_tensor(scales, "scales", at::kFloat, {out(), groups()});
  if (minimums.defined())
    check_tensor(minimums, "minimums", at::kFloat, {out(), groups()});
  else
    check_tensor(zeros, "zeros", at::kByte, {out(), groups()});
  const auto below = [&](const at::Tensor& t) {
    const auto* value = t.const_data_ptr<uint8_t>();
    uint8_t all = 0;
    for (int64_t i = 0; i < t.numel(); ++i) all |= value[i];
    return all >> kernels::bits_of(bits) == 0;
  };
  TORCH_CHECK(below(values) && (minimums.defined() || below(zeros)), "a quantised weight of ", bits,
              " bits with larger values or zero-points");
  const auto finite = [](const at::Tensor& t) {
    return !t.defined() || at::isfinite(t).all().item<bool>();
  };
  TORCH_CHECK(finite(scales) && finite(minimums),
              "a quantised weight with scales that are not finite");
}

QuantisedTensor QuantisedTensor::in_rows(const at::Tensor& order) const {
  const auto ordered = [&](const at::Tensor& t) {
    return t.defined() ? t.index_select(0, order) : t;
  };
  return {ordered(values), bits, ordered(scales), ordered(zeros), group, ordered(minimums)};
}

QuantisedTensor QuantisedTensor::part(std::array<int64_t, 2> outs,
                                      std::array<int64_t, 2> ins) const {
  const auto [first, last] = ins;
  QuantisedTensor cut;
  cut.bits = bits;
  cut.values = values.slice(0, outs[0], outs[1]).slice(1, first, last).contiguous();
  // The largest group size that keeps all boundaries, even if the part begins inside a group.
  const bool one = first / group == (last - 1) / group;
  cut.group = one ? last - first : std::min(std::gcd(group, first), last - first);
  const at::Tensor of_whole =
      (at::arange(cut.groups(), at::kLong) * cut.group + first).floor_divide(group);
  const auto of_part = [&](const at::Tensor& t) {
    return t.defined() ? t.slice(0, outs[0], outs[1]).index_select(1, of_whole) : t;
  };
  cut.scales = of_part(scales);
  cut.zeros = of_part(zeros);
  cut.minimums = of_part(minimums);
  return cut;
}

at::Tensor QuantisedTensor::decoded() const {
  at::Tensor w = at::empty({out(), in()}, at::kFloat);
  const auto* value = values.const_data_ptr<uint8_t>();
  const auto* zero = minimums.defined() ? nullptr : zeros.const_data_ptr<uint8_t>();
  const auto* least = minimums.defined() ? minimums.const_data_ptr<float>() : nullptr;
  const auto* scale = scales.const_data_ptr<float>();
  auto* to = w.mutable_data_ptr<float>();
  const int64_t width = in(), count = groups(), length = group;
  torch_parallel()(0, out(), 16, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o)
      for (int64_t g = 0; g < count; ++g) {
        const float z = zero ? static_cast<float>(zero[o * count + g]) : 0;
        const float s = scale[o * count + g], m = least ? least[o * count + g] : 0;
        const int64_t last = o * width + std::min(width, (g + 1) * length);
        for (int64_t i = o * width + g * length; i < last; ++i)
          to[i] = (static_cast<float>(value[i]) - z) * s + m;
      }
  });
  return w;
}

}  // namespace valora::ops
