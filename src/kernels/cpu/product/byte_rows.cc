// Compiled without contraction to fused multiply-adds, whose rounding would differ between
// machines.
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

constexpr float kLowestByte = -128, kLargestByte = 127;
constexpr float kHalfRange = (kLargestByte - kLowestByte) / 2;
// Sums of 512 products of bytes are below 2^24, so fp32 holds them exactly and nothing is lost when
// the zero-point's part is subtracted.
constexpr int64_t kLongestExactSpan = 512;
constexpr int64_t kLargestBlock = 128;
// The order in which a chunk's inputs are stored for 4-bit weights (byte_product.h).
constexpr int kNibbleOrder[kChunkInputs] = {0, 4, 1, 5, 2, 6, 3, 7};

int64_t rounded_up(int64_t k) { return (k + kChunkInputs - 1) / kChunkInputs * kChunkInputs; }

// The largest multiple of a chunk, at most `most`, that divides `size`, itself a multiple of a
// chunk.
int64_t largest_part(int64_t size, int64_t most) {
  int64_t part = std::min(size, most) / kChunkInputs * kChunkInputs;
  while (size % part != 0) part -= kChunkInputs;
  return part;
}

VALORA_CLONES void round_block(const float* x, int64_t count, float inverse, int32_t* q) {
  for (int64_t i = 0; i < count; ++i)
    q[i] = static_cast<int32_t>((x[i] * inverse + kToInteger) - kToInteger);
}

// Rounds as compressed-tensors does: divides, instead of multiplying by the inverse.
VALORA_CLONES void round_in_range(const float* x, int64_t count, float scale, int32_t* q) {
  for (int64_t i = 0; i < count; ++i) {
    const float steps = std::min(std::max(x[i] / scale, kLowestByte), kLargestByte);
    q[i] = static_cast<int32_t>((steps + kToInteger) - kToInteger);
  }
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

// q: [count]. → the scale.
float round_to_range(const float* x, int64_t count, float largest, int32_t* q) {
  const float inverse = kLargestByte / largest;
  if (std::isfinite(inverse) && inverse != 0)
    round_block(x, count, inverse, q);
  else
    std::fill_n(q, count, 0);
  return std::isinf(inverse) ? 0 : largest / kLargestByte;
}

float round_as(const RowRounding& rounding, const float* x, int64_t count, float largest,
               int32_t* q) {
  float scale = rounding.scale != 0 ? rounding.scale : largest / kHalfRange;
  if (std::isnan(largest)) scale = largest;
  if (scale == 0) scale = 1;
  if (std::isfinite(scale))
    round_in_range(x, count, scale, q);
  else
    std::fill_n(q, count, 0);
  return scale;
}

// Rounds one row, given as padded fp32. q: scratch memory for form.chunks(). whole: the largest
// magnitude of the row that x is part of; null: x is the whole row.
void round_row(const float* x, const ByteForm& form, const float* whole, int32_t* q,
               RoundedRows row) {
  const int64_t padded = form.chunks() * kChunkInputs;
  for (int64_t begin = 0; begin < padded; begin += form.block) {
    const int64_t count = std::min(form.block, padded - begin);
    const auto largest = whole ? *whole : std::bit_cast<float>(largest_bits(x + begin, count));
    const float scale = form.row_rounding
                            ? round_as(*form.row_rounding, x + begin, count, largest, q + begin)
                            : round_to_range(x + begin, count, largest, q + begin);
    for (int64_t i = 0; i < count; i += form.span) *row.scales++ = scale;
  }
  for (int64_t begin = 0; begin < padded; begin += form.span) {
    const int32_t sum = total_of(q + begin, std::min(form.span, padded - begin));
    *row.sums++ = static_cast<float>(sum);
    *row.starts++ = form.start * sum;
  }
  if (form.bits == 4)
    store_nibble_order(q, form.chunks(), row.values);
  else if (form.input_bytes == 2)
    store_in_order<int16_t>(q, padded, row.values);
  else
    store_in_order<int8_t>(q, padded, row.values);
}

}  // namespace

int64_t input_block(int64_t group, int64_t k) {
  if (group >= k) return std::min(rounded_up(k), kLargestBlock);
  return group > kLargestBlock ? largest_part(group, kLargestBlock) : kLargestBlock / group * group;
}

ByteForm byte_form(const IntegerPanels& w, const ByteKernels& kernels) {
  const int wide = w.bits == 4 ? 0 : 1;
  const int64_t all = rounded_up(w.k), group = w.group < w.k ? w.group : all,
                block = w.input_block < w.k ? w.input_block : all, both = std::min(group, block),
                most = w.row_rounding ? std::min(kernels.most_span[wide], kLongestExactSpan)
                                      : kernels.most_span[wide];
  return {w.k,
          block,
          both < all ? largest_part(both, most) : std::min(all, most),
          w.bits,
          kernels.input_bytes[wide],
          kernels.starts && !w.zeros ? -usual_zero(w) : 0,
          w.row_rounding};
}

template <typename T>
void round_rows_to_bytes(const T* x, int64_t m, int64_t ldx, const ByteForm& form,
                         const RoundedRows& rows, const float* largest) {
  const int64_t padded = form.chunks() * kChunkInputs;
  std::vector<float> row(padded);
  std::vector<int32_t> q(padded);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < form.k; ++j) row[j] = to_float(x[i * ldx + j]);
    round_row(row.data(), form, largest ? largest + i : nullptr, q.data(), rows.from(i, form));
  }
}

#define VALORA_INSTANTIATE(T)                                                    \
  template void round_rows_to_bytes(const T*, int64_t, int64_t, const ByteForm&, \
                                    const RoundedRows&, const float*);
VALORA_INSTANTIATE(float)
VALORA_INSTANTIATE(bf16)
#undef VALORA_INSTANTIATE

}  // namespace valora::kernels
