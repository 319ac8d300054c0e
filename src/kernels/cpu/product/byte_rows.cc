// Compiled without contraction to fused multiply-adds, whose rounding would depend on the machine.
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "kernels/cpu/isa/clones.h"
#include "kernels/cpu/isa/to_integer.h"
#include "kernels/cpu/product/byte_product.h"
#include "kernels/cpu/product/magnitude.h"

namespace valora::kernels {
namespace {

constexpr float kLargestByte = 127;
constexpr int64_t kLargestBlock = 128;
// Where a chunk's inputs are stored for weights of 4 bits (byte_product.h).
constexpr int kNibbleOrder[kChunkInputs] = {0, 4, 1, 5, 2, 6, 3, 7};

int64_t rounded_up(int64_t k) { return (k + kChunkInputs - 1) / kChunkInputs * kChunkInputs; }

// The largest multiple of a chunk up to `most` that divides `size`, a multiple of a chunk.
int64_t largest_part(int64_t size, int64_t most) {
  int64_t part = std::min(size, most) / kChunkInputs * kChunkInputs;
  while (size % part != 0) part -= kChunkInputs;
  return part;
}

VALORA_CLONES void round_block(const float* x, int64_t count, float inverse, int32_t* q) {
  for (int64_t i = 0; i < count; ++i)
    q[i] = static_cast<int32_t>((x[i] * inverse + kToInteger) - kToInteger);
}

VALORA_CLONES int32_t total_of(const int32_t* q, int64_t count) {
  int32_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += q[i];
  return sum;
}

void store_nibble_order(const int32_t* q, int64_t chunks, uint8_t* values) {
  for (int64_t c = 0; c < chunks; ++c, q += kChunkInputs, values += kChunkInputs)
    for (int64_t i = 0; i < kChunkInputs; ++i) values[i] = static_cast<uint8_t>(q[kNibbleOrder[i]]);
}

template <typename Value>
void store_in_order(const int32_t* q, int64_t count, uint8_t* bytes) {
  auto* values = reinterpret_cast<Value*>(bytes);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<Value>(q[i]);
}

// One row, whose inputs are in fp32 and padded. q: scratch for form.chunks().
void round_row(const float* x, const ByteForm& form, int32_t* q, uint8_t* values, float* scales,
               float* sums) {
  const int64_t padded = form.chunks() * kChunkInputs;
  for (int64_t begin = 0; begin < padded; begin += form.block) {
    const int64_t count = std::min(form.block, padded - begin);
    const auto largest = std::bit_cast<float>(largest_bits(x + begin, count));
    const float inverse = kLargestByte / largest;
    if (std::isfinite(inverse) && inverse != 0)
      round_block(x + begin, count, inverse, q + begin);
    else
      std::fill_n(q + begin, count, 0);
    const float scale = std::isinf(inverse) ? 0 : largest / kLargestByte;
    for (int64_t i = 0; i < count; i += form.span) *scales++ = scale;
  }
  for (int64_t begin = 0; begin < padded; begin += form.span)
    *sums++ = static_cast<float>(total_of(q + begin, std::min(form.span, padded - begin)));
  if (form.bits == 4)
    store_nibble_order(q, form.chunks(), values);
  else if (form.input_bytes == 2)
    store_in_order<int16_t>(q, padded, values);
  else
    store_in_order<int8_t>(q, padded, values);
}

}  // namespace

int64_t input_block(int64_t group, int64_t k) {
  return group < k ? largest_part(group, kLargestBlock) : std::min(rounded_up(k), kLargestBlock);
}

ByteForm byte_form(const IntegerPanels& w, const ByteKernels& kernels) {
  const int wide = w.bits == 4 ? 0 : 1;
  const int64_t all = rounded_up(w.k), group = w.group < w.k ? w.group : all,
                block = w.input_block < w.k ? w.input_block : all, both = std::min(group, block),
                most = kernels.most_span[wide];
  return {w.k, block, both < all ? largest_part(both, most) : std::min(all, most), w.bits,
          kernels.input_bytes[wide]};
}

template <typename T>
void round_rows_to_bytes(const T* x, int64_t m, int64_t ldx, const ByteForm& form, uint8_t* values,
                         float* scales, float* sums) {
  const int64_t padded = form.chunks() * kChunkInputs;
  std::vector<float> row(padded);
  std::vector<int32_t> q(padded);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < form.k; ++j) row[j] = to_float(x[i * ldx + j]);
    round_row(row.data(), form, q.data(), values + i * form.row_bytes(), scales + i * form.spans(),
              sums + i * form.spans());
  }
}

#define VALORA_INSTANTIATE(T)                                                                      \
  template void round_rows_to_bytes(const T*, int64_t, int64_t, const ByteForm&, uint8_t*, float*, \
                                    float*);
VALORA_INSTANTIATE(float)
VALORA_INSTANTIATE(bf16)
#undef VALORA_INSTANTIATE

}  // namespace valora::kernels
