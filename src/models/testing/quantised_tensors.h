// Quantised linears in their writers' formats, packed value by value from the published layouts.
#pragma once

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <map>
#include <string>
#include <vector>

#include "base/testing/safetensors_text.h"

namespace valora::models::testing {

using valora::testing::RawTensor;

inline RawTensor raw(const at::Tensor& tensor) {
  static const std::map<at::ScalarType, const char*> kNames = {
      {at::kFloat, "F32"},     {at::kHalf, "F16"},
      {at::kBFloat16, "BF16"}, {at::kLong, "I64"},
      {at::kInt, "I32"},       {at::kChar, "I8"},
      {at::kByte, "U8"},       {at::kFloat8_e4m3fn, "F8_E4M3"}};
  const at::Tensor t = tensor.contiguous();
  return {kNames.at(t.scalar_type()), t.sizes().vec(),
          std::string(static_cast<const char*>(t.const_data_ptr()), t.nbytes())};
}

// Packs uint8 [rows, columns] into int32 words along the columns. order[i]: the column at position
// i of each word, from the lowest bits.
inline at::Tensor words(const at::Tensor& values, int bits, std::vector<int> order = {}) {
  const int64_t n = 32 / bits, rows = values.size(0), columns = values.size(1),
                width = (columns + n - 1) / n;
  at::Tensor packed = at::zeros({rows, width}, at::kInt);
  const auto from = values.accessor<uint8_t, 2>();
  auto to = packed.accessor<int32_t, 2>();
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < width * n; ++i) {
      const int64_t place = i % n, column = i - place + (order.empty() ? place : order[place]);
      if (column < columns)
        to[row][i / n] |= static_cast<int32_t>(uint32_t{from[row][column]} << (bits * place));
    }
  return packed;
}

// A linear [out, in] with random integers.
struct RandomIntegers {
  at::Tensor values, zeros, scales;  // uint8 [out, in], uint8 [out, groups], float [out, groups]
  int bits;
  int64_t group;

  RandomIntegers(int64_t out, int64_t in, int b, int64_t g, bool symmetric, uint64_t seed = 5)
      : bits(b), group(g) {
    at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
    const int64_t groups = (in + g - 1) / g;
    values = at::randint(0, 1 << b, {out, in}, generator, at::kByte);
    // Never the largest: GPTQ's first format cannot store its successor.
    zeros = symmetric ? at::full({out, groups}, 1 << (b - 1), at::kByte)
                      : at::randint(1, 1 << b, {out, groups}, generator, at::kByte);
    scales = (at::rand({out, groups}, generator) + 0.5) / 16;
    scales = scales.to(at::kHalf).to(at::kFloat);
  }
  // order: the group of each input, int64 [in].
  at::Tensor decoded(const at::Tensor& order) const {
    return (values.to(at::kFloat) - zeros.to(at::kFloat).index_select(1, order)) *
           scales.index_select(1, order);
  }
  at::Tensor decoded() const {
    return decoded(at::arange(values.size(1), at::kLong).floor_divide(group));
  }

  using Tensors = std::map<std::string, RawTensor>;
  void store_compressed(Tensors& to, const std::string& name, bool symmetric) const {
    to[name + ".weight_packed"] = raw(words(values, bits));
    to[name + ".weight_shape"] = raw(at::tensor({values.size(0), values.size(1)}, at::kLong));
    to[name + ".weight_scale"] = raw(scales.to(at::kHalf));
    if (!symmetric) to[name + ".weight_zero_point"] = raw(words(zeros.t().contiguous(), bits).t());
  }
  void store_gptq(Tensors& to, const std::string& name, bool less_one,
                  const at::Tensor& order = {}) const {
    const int64_t in = values.size(1);
    to[name + ".qweight"] = raw(words(values, bits).t());
    to[name + ".qzeros"] = raw(words((zeros - (less_one ? 1 : 0)).t().contiguous(), bits));
    to[name + ".scales"] = raw(scales.t().to(at::kHalf));
    to[name + ".g_idx"] =
        raw((order.defined() ? order : at::arange(in, at::kLong).floor_divide(group)).to(at::kInt));
  }
  void store_awq(Tensors& to, const std::string& name) const {
    const std::vector<int> order{0, 2, 4, 6, 1, 3, 5, 7};
    to[name + ".qweight"] = raw(words(values.t().contiguous(), bits, order));
    to[name + ".qzeros"] = raw(words(zeros.t().contiguous(), bits, order));
    to[name + ".scales"] = raw(scales.t().to(at::kHalf));
  }
};

}  // namespace valora::models::testing
