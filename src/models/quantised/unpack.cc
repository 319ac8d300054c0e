#include "models/quantised/unpack.h"

#include <ATen/Parallel.h>

#include <algorithm>

namespace valora::models {
namespace {

constexpr int64_t kGrain = int64_t{1} << 16;  // words per thread

int64_t rows_of_grain(int64_t words) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, words));
}

}  // namespace

at::Tensor unpack_along_columns(const at::Tensor& words, int bits, int64_t width) {
  const int per_word = 32 / bits;
  const uint32_t mask = (1u << bits) - 1;
  const at::Tensor from = words.contiguous();
  const int64_t rows = from.size(0), columns = from.size(1);
  TORCH_CHECK(columns == (width + per_word - 1) / per_word, "unpack: ", words.sizes(),
              " words for ", width, " values");
  at::Tensor values = at::empty({rows, width}, at::kByte);
  const auto* in = reinterpret_cast<const uint32_t*>(from.const_data_ptr<int32_t>());
  auto* out = values.mutable_data_ptr<uint8_t>();
  at::parallel_for(0, rows, rows_of_grain(columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t i = 0; i < width; ++i)
        out[row * width + i] = static_cast<uint8_t>(
            (in[row * columns + i / per_word] >> (bits * (i % per_word))) & mask);
  });
  return values;
}

at::Tensor unpack_along_rows(const at::Tensor& words, int bits, int64_t height) {
  const int per_word = 32 / bits;
  const uint32_t mask = (1u << bits) - 1;
  const at::Tensor from = words.contiguous();
  const int64_t rows = from.size(0), columns = from.size(1);
  TORCH_CHECK(rows == (height + per_word - 1) / per_word, "unpack: ", words.sizes(), " words for ",
              height, " values");
  at::Tensor values = at::empty({height, columns}, at::kByte);
  const auto* in = reinterpret_cast<const uint32_t*>(from.const_data_ptr<int32_t>());
  auto* out = values.mutable_data_ptr<uint8_t>();
  at::parallel_for(0, height, rows_of_grain(columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t column = 0; column < columns; ++column)
        out[i * columns + column] = static_cast<uint8_t>(
            (in[i / per_word * columns + column] >> (bits * (i % per_word))) & mask);
  });
  return values;
}

}  // namespace valora::models
