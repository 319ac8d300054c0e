#include "generator/quantise/packed_linear.h"

#include <cstring>

#include "models/weights/weights.h"

namespace valora::generator {
namespace {

OwnedTensor owned(std::string name, DType dtype, const at::Tensor& values) {
  const at::Tensor flat = values.contiguous();
  OwnedTensor tensor{std::move(name), dtype, flat.sizes().vec(), {}};
  tensor.bytes.resize(flat.nbytes());
  std::memcpy(tensor.bytes.data(), flat.const_data_ptr(), tensor.bytes.size());
  return tensor;
}

// int32 [out, ceil(in / n)], n = 32 / bits, lowest bits first.
at::Tensor words_of(const at::Tensor& values, int bits) {
  const int64_t out = values.size(0), in = values.size(1), n = 32 / bits, width = (in + n - 1) / n;
  at::Tensor words = at::zeros({out, width}, at::kInt);
  auto* const to = words.mutable_data_ptr<int32_t>();
  const auto* const from = values.const_data_ptr<uint8_t>();
  for (int64_t o = 0; o < out; ++o)
    for (int64_t i = 0; i < in; ++i) {
      auto word = static_cast<uint32_t>(to[o * width + i / n]);
      word |= static_cast<uint32_t>(from[o * in + i]) << (bits * (i % n));
      to[o * width + i / n] = static_cast<int32_t>(word);
    }
  return words;
}

}  // namespace

std::vector<OwnedTensor> packed_linear(const std::string& name, const ops::QuantisedTensor& linear,
                                       QuantiseScheme scheme, DType scales) {
  std::vector<OwnedTensor> parts{
      owned(name + ".weight_scale", scales, linear.scales.to(models::stored_type(scales)))};
  if (scheme == QuantiseScheme::kW8A8) {
    parts.push_back(
        owned(name + ".weight", DType::kI8, (linear.values.to(at::kShort) - 128).to(at::kChar)));
    return parts;
  }
  parts.push_back(
      owned(name + ".weight_packed", DType::kI32, words_of(linear.values, linear.bits)));
  parts.push_back(owned(name + ".weight_shape", DType::kI64,
                        at::tensor({linear.out(), linear.in()}, at::kLong)));
  return parts;
}

}  // namespace valora::generator
