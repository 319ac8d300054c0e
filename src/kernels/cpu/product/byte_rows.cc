// Compiled without contraction to fused multiply-adds, whose rounding would differ between
// machines.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

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
// How far ahead values are fetched; beyond the end of a row are those of the next one.
constexpr int64_t kFetchAhead = 1024;

int64_t rounded_up(int64_t k) { return (k + kChunkInputs - 1) / kChunkInputs * kChunkInputs; }

// The largest multiple of a chunk, at most `most`, that divides `size`, itself a multiple of a
// chunk.
int64_t largest_part(int64_t size, int64_t most) {
  int64_t part = std::min(size, most) / kChunkInputs * kChunkInputs;
  while (size % part != 0) part -= kChunkInputs;
  return part;
}

// The largest magnitude; a NaN counts as larger than all numbers.
float largest_of(const float* x, int64_t count) {
  return std::bit_cast<float>(largest_bits(x, count));
}
VALORA_CLONES float largest_of(const bf16* x, int64_t count) {
  uint16_t most = 0;
  for (int64_t i = 0; i < count; ++i)
    most = std::max(most, static_cast<uint16_t>(x[i].bits & 0x7fff));
  return to_float(bf16{most});
}

// The integer in the low bits of kToInteger + q.
inline int32_t integer_of(float sum) {
  return std::bit_cast<int32_t>(sum) - std::bit_cast<int32_t>(kToInteger);
}

// How the inputs of a block become integers. factor: the inverse of the scale, or, with `divide`,
// the scale.
struct Rounding {
  float scale;
  float factor;
  bool divide;
};

// compressed-tensors divides by the scale, instead of multiplying by the inverse.
template <bool DIVIDE>
inline __attribute__((always_inline)) float steps_of(float x, float factor) {
  if constexpr (!DIVIDE) return x * factor;
  return std::min(std::max(x / factor, kLowestByte), kLargestByte);
}

// → Σ q.
template <bool DIVIDE, typename T, typename Q>
inline __attribute__((always_inline)) int32_t round_inputs(const T* __restrict x, int64_t count,
                                                           float factor, Q* __restrict q) {
  int32_t sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int32_t value = integer_of(steps_of<DIVIDE>(to_float(x[i]), factor) + kToInteger);
    q[i] = static_cast<Q>(value);
    sum += value;
  }
  return sum;
}

// Inputs per loop whose length the compiler knows: most spans have a multiple of it.
constexpr int64_t kRoundedTogether = 32;

// Rounds the inputs of a block. row: that of the block's first span.
template <bool DIVIDE, typename T, typename Q>
inline __attribute__((always_inline)) void round_spans(const T* x, int64_t count,
                                                       const ByteForm& form,
                                                       const Rounding& rounding, Q* q,
                                                       RoundedRows row) {
  const float factor = rounding.factor;
  for (int64_t i = 0; i < count;) {
    const int64_t end = std::min(count, i + form.span);
    int32_t sum = 0;
    for (; i + kRoundedTogether <= end; i += kRoundedTogether)
      sum += round_inputs<DIVIDE>(x + i, kRoundedTogether, factor, q + i);
    if (i < end) sum += round_inputs<DIVIDE>(x + i, end - i, factor, q + i);
    i = end;
    *row.scales++ = rounding.scale;
    *row.sums++ = static_cast<float>(sum);
    *row.starts++ = form.start * sum;
  }
}

#define VALORA_ROUND_BLOCK(T, Q)                                                           \
  VALORA_CLONES void round_block(const T* x, int64_t count, const ByteForm& form,          \
                                 const Rounding& rounding, Q* q, const RoundedRows& row) { \
    if (rounding.divide)                                                                   \
      round_spans<true>(x, count, form, rounding, q, row);                                 \
    else                                                                                   \
      round_spans<false>(x, count, form, rounding, q, row);                                \
  }
VALORA_ROUND_BLOCK(float, int8_t)
VALORA_ROUND_BLOCK(float, int16_t)
VALORA_ROUND_BLOCK(bf16, int8_t)
VALORA_ROUND_BLOCK(bf16, int16_t)
#undef VALORA_ROUND_BLOCK

// All integers of the block become 0.
template <typename Q>
void clear_block(int64_t count, int64_t spans, float scale, Q* q, const RoundedRows& row) {
  std::fill_n(q, count, Q{0});
  std::fill_n(row.scales, spans, scale);
  std::fill_n(row.sums, spans, 0.f);
  std::fill_n(row.starts, spans, 0);
}

// A factor of 0: the integers are 0.
Rounding rounding_to_range(float largest) {
  const float inverse = kLargestByte / largest;
  return {std::isinf(inverse) ? 0 : largest / kLargestByte, std::isfinite(inverse) ? inverse : 0,
          false};
}

Rounding rounding_as(const RowRounding& row, float largest) {
  float scale = row.scale != 0 ? row.scale : largest / kHalfRange;
  if (std::isnan(largest)) scale = largest;
  if (scale == 0) scale = 1;
  return {scale, std::isfinite(scale) ? scale : 0, true};
}

// Fetches values that will be written. Stores alone would wait, a few at a time, for lines from the
// cache of the core that read the last launch's values there.
template <typename Q>
void fetch_to_write(const Q* values, int64_t count) {
  constexpr int64_t kLine = 64;
  for (int64_t i = 0; i < count; i += kLine / static_cast<int64_t>(sizeof(Q)))
    __builtin_prefetch(values + i, 1);
}

// The order of byte_product.h, in two chunks.
inline __attribute__((always_inline)) void reorder_two(int8_t* values) {
  using Two = int8_t __attribute__((vector_size(2 * kChunkInputs)));
  Two v;
  std::memcpy(&v, values, sizeof v);
  v = __builtin_shufflevector(v, v, 0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
  std::memcpy(values, &v, sizeof v);
}
inline __attribute__((always_inline)) void reorder_two(int16_t* values) {
  using Two = int16_t __attribute__((vector_size(4 * kChunkInputs)));
  Two v;
  std::memcpy(&v, values, sizeof v);
  v = __builtin_shufflevector(v, v, 0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15);
  std::memcpy(values, &v, sizeof v);
}

#define VALORA_REORDER(Q)                                                             \
  VALORA_CLONES void reorder(Q* values, int64_t chunks) {                             \
    for (; chunks >= 2; chunks -= 2, values += 2 * kChunkInputs) reorder_two(values); \
    if (chunks == 0) return;                                                          \
    Q last[2 * kChunkInputs] = {};                                                    \
    std::copy_n(values, kChunkInputs, last);                                          \
    reorder_two(last);                                                                \
    std::copy_n(last, kChunkInputs, values);                                          \
  }
VALORA_REORDER(int8_t)
VALORA_REORDER(int16_t)
#undef VALORA_REORDER

// Rounds one row. whole: the largest magnitude of the row that x is part of; null: x is the whole
// row.
template <typename T, typename Q>
void round_row(const T* x, const ByteForm& form, const float* whole, const RoundedRows& row) {
  auto* values = reinterpret_cast<Q*>(row.values);
  const int64_t block_spans = form.block_spans();
  // A pass of its own: rounding depends on a block's largest magnitude, and would wait for it.
  float* scale = row.scales;
  for (int64_t begin = 0; begin < form.k; begin += form.block, scale += block_spans)
    *scale = whole ? *whole : largest_of(x + begin, std::min(form.block, form.k - begin));
  RoundedRows block = row;
  for (int64_t begin = 0; begin < form.k; begin += form.block) {
    const int64_t count = std::min(form.block, form.k - begin);
    fetch_to_write(values + begin + kFetchAhead, count);
    const float largest = *block.scales;
    const Rounding rounding =
        form.row_rounding ? rounding_as(*form.row_rounding, largest) : rounding_to_range(largest);
    if (rounding.factor != 0)
      round_block(x + begin, count, form, rounding, values + begin, block);
    else
      clear_block(count, (count + form.span - 1) / form.span, rounding.scale, values + begin,
                  block);
    block.scales += block_spans;
    block.sums += block_spans;
    block.starts += block_spans;
  }
  std::fill(values + form.k, values + form.chunks() * kChunkInputs, Q{0});
  if (sizeof(Q) == 2 || bits_of(form.bits) == 4) reorder(values, form.chunks());
}

}  // namespace

int64_t input_block(int64_t group, int64_t k) {
  if (group >= k) return std::min(rounded_up(k), kLargestBlock);
  return group > kLargestBlock ? largest_part(group, kLargestBlock) : kLargestBlock / group * group;
}

ByteForm byte_form(const IntegerPanels& w, const ByteKernels& kernels) {
  const int64_t all = rounded_up(w.k), group = w.group < w.k ? w.group : all,
                block = w.input_block < w.k ? w.input_block : all, both = std::min(group, block),
                most = w.row_rounding ? std::min(kernels.most_span[w.bits], kLongestExactSpan)
                                      : kernels.most_span[w.bits];
  return {w.k,
          block,
          both < all ? largest_part(both, most) : std::min(all, most),
          w.bits,
          kernels.input_bytes[w.bits],
          kernels.starts && !w.zeros ? -usual_zero(w) : 0,
          w.row_rounding};
}

template <typename T>
void round_rows_to_bytes(const T* x, int64_t m, int64_t ldx, const ByteForm& form,
                         const RoundedRows& rows, const float* largest) {
  const auto round = form.input_bytes == 2 ? round_row<T, int16_t> : round_row<T, int8_t>;
  for (int64_t i = 0; i < m; ++i)
    round(x + i * ldx, form, largest ? largest + i : nullptr, rows.from(i, form));
}

#define VALORA_INSTANTIATE(T)                                                    \
  template void round_rows_to_bytes(const T*, int64_t, int64_t, const ByteForm&, \
                                    const RoundedRows&, const float*);
VALORA_INSTANTIATE(float)
VALORA_INSTANTIATE(bf16)
#undef VALORA_INSTANTIATE

}  // namespace valora::kernels
