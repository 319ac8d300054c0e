// Codes queries and weights of keys for the sums of byte_sums.h.
#pragma once

#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/cpu/attention/byte_attention.h"
#include "kernels/cpu/isa/lanes.h"

namespace valora::kernels {
namespace {

// 16 words or bf16.
using LaneWords = uint16_t __attribute__((vector_size(32)));

// For smaller maxima, limit / maximum may overflow.
inline constexpr float kLeastLargest = 65535 * std::numeric_limits<float>::min();

inline __attribute__((always_inline)) LaneWords low_words(LaneBits bits) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  // g++ 12 converts vectors of two registers element by element.
  struct Halves {
    __m256i low, high;
  };
  const auto x = __builtin_bit_cast(Halves, bits & 0xffff);
  return (LaneWords)_mm256_permute4x64_epi64(_mm256_packus_epi32(x.low, x.high), 0xd8);
#else
  return __builtin_convertvector(bits, LaneWords);
#endif
}

// Brings the words of four quads into the order of a code and stores them.
template <RowCode CODE>
inline __attribute__((always_inline)) void store_coded(uint8_t* p, LaneWords words) {
  using Bytes = uint8_t __attribute__((vector_size(32)));
  const Bytes x = (Bytes)words;
  Bytes y;
  if constexpr (CODE == RowCode::kBytes)
    y = __builtin_shufflevector(x, x, 1, 3, 5, 7, 0, 2, 4, 6, 9, 11, 13, 15, 8, 10, 12, 14, 17, 19,
                                21, 23, 16, 18, 20, 22, 25, 27, 29, 31, 24, 26, 28, 30);
  else
    y = __builtin_shufflevector(x, x, 0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15, 16, 17,
                                20, 21, 18, 19, 22, 23, 24, 25, 28, 29, 26, 27, 30, 31);
  std::memcpy(p, &y, sizeof y);
}
inline __attribute__((always_inline)) void store_lanes(void* p, Lanes lanes) {
  std::memcpy(p, &lanes, sizeof lanes);
}

inline __attribute__((always_inline)) float largest_of(Lanes lanes) {
  return reduce_lanes(lanes, larger_bits);
}

// Stores 16 inputs in a code of floats.
template <typename V, RowCode CODE>
inline __attribute__((always_inline)) void store_inputs(uint8_t* coded, int64_t i, Lanes x) {
  uint8_t* const at = coded + i / kQuad * weight_quad_bytes(CODE);
  if constexpr (CODE == RowCode::kFloats)
    store_lanes(at, x);
  else
    store_coded<CODE>(at, V::rounded(x));
}

inline __attribute__((always_inline)) float largest_query(const ByteQuery& query) {
  Lanes best{};
  for (int64_t i = 0; i < query.width; i += kPanelOutputs)
    best = larger_bits(best, (Lanes)((LaneBits)load_lanes(query.x + i) & 0x7fffffff));
  return largest_of(best);
}

// most: the largest magnitude of x.
template <typename V, RowCode CODE>
inline __attribute__((always_inline)) void round_query(ByteQuery& query, float most) {
  const float limit = CODE == RowCode::kBytes ? 127 : query.most_word;
  if (!(most >= kLeastLargest && most <= std::numeric_limits<float>::max())) {
    std::memset(query.coded, 0, query.width / kQuad * query_quad_bytes(CODE));
    query.scale = most < kLeastLargest ? 0 : std::numeric_limits<float>::quiet_NaN();
    return;
  }
  query.scale = most / limit;
  const float inverse = limit / most;
  uint8_t* const coded = query.coded;
  LaneBits sum{};
  for (int64_t i = 0; i < query.width; i += kPanelOutputs) {
    const LaneBits bits = (LaneBits)(load_lanes(query.x + i) * inverse + kToInteger);
    uint8_t* const at = coded + i / kQuad * query_quad_bytes(CODE);
    if constexpr (CODE == RowCode::kBytes) {
      V::store_bytes(at, bits);
      sum += bits - (LaneBits)(Lanes{} + kToInteger);
    } else {
      store_coded<CODE>(at, low_words(bits));
    }
  }
  // Sums of bytes take keys as unsigned numbers, 128 larger than they are.
  if constexpr (CODE == RowCode::kBytes) query.start = -128 * V::sum_of_ints(sum);
}

// Each pass runs over all rows, so that rows do not wait for each other's reductions.
template <typename V, RowCode CODE>
void code_queries(ByteQuery* rows, int64_t count) {
  float most[kMostRegisterRows];
  if constexpr (CODE == RowCode::kWords || CODE == RowCode::kBytes) {
    for (int64_t r = 0; r < count; ++r) most[r] = largest_query(rows[r]);
    for (int64_t r = 0; r < count; ++r) round_query<V, CODE>(rows[r], most[r]);
  } else {
    for (int64_t r = 0; r < count; ++r)
      for (int64_t i = 0; i < rows[r].width; i += kPanelOutputs)
        store_inputs<V, CODE>(rows[r].coded, i, load_lanes(rows[r].x + i));
  }
}

// The row of a softmax step in vectors of keys. `Whole` is true for vectors whose keys are all in
// [hidden, seen).
template <typename Body>
inline __attribute__((always_inline)) void for_seen(const ByteSoftmax& s, const Body& body) {
  constexpr int64_t kLanes = kPanelOutputs;
  int64_t i = s.hidden / kLanes * kLanes;
  if (i < s.hidden) {
    body(i, std::false_type());
    i += kLanes;
  }
  for (; i + kLanes <= s.seen; i += kLanes) body(i, std::true_type());
  if (i < s.seen) body(i, std::false_type());
}
// x where a key is in [hidden, seen), otherwise `other`.
template <typename Whole>
inline __attribute__((always_inline)) Lanes where_seen(const ByteSoftmax& s, int64_t i, Lanes x,
                                                       Lanes other, Whole) {
  if constexpr (Whole()) return x;
  const LaneBits keys =
      LaneBits{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} + static_cast<int32_t>(i);
  return (keys >= static_cast<int32_t>(s.hidden)) & (keys < static_cast<int32_t>(s.seen)) ? x
                                                                                          : other;
}

// Rounds the products of weights and scales, in s.scores, to at most `limit`.
template <RowCode CODE>
inline __attribute__((always_inline)) void round_weights(ByteSoftmax& s, float most) {
  constexpr float kLimit = CODE == RowCode::kBytes ? 65535 : 32767;
  const int64_t begin = s.hidden / kPanelOutputs * kPanelOutputs;
  uint8_t* const weights = s.weights;
  if (!(most >= kLeastLargest && most <= std::numeric_limits<float>::max())) {
    std::memset(weights, 0, s.width / kQuad * weight_quad_bytes(CODE));
    s.weight_scale = most < kLeastLargest ? 0 : std::numeric_limits<float>::quiet_NaN();
    return;
  }
  s.weight_scale = most / kLimit;
  const float inverse = kLimit / most;
  const float* const products = s.scores;
  const int64_t end = s.seen;
  for (int64_t i = begin; i < end; i += kPanelOutputs)
    store_coded<CODE>(weights + i / kQuad * weight_quad_bytes(CODE),
                      low_words((LaneBits)(load_lanes(products + i) * inverse + kToInteger)));
}

// The maximum of the scores; row_max and rescale follow from it.
inline __attribute__((always_inline)) void find_row_max(ByteSoftmax& s) {
  constexpr float kInfinity = __builtin_inff();
  const Lanes nothing = Lanes{} - kInfinity;
  Lanes best = nothing;
  for_seen(s, [&](int64_t i, auto whole) __attribute__((always_inline)) {
    const Lanes score = where_seen(s, i, load_lanes(s.scores + i), nothing, whole);
    best = larger(score, best);
  });
  const float before = s.row_max, found = max_lane(best) * s.scale;
  s.row_max = found > before ? found : before;
  s.rescale = before == -kInfinity ? 0 : exp_lanes(Lanes{} + (before - s.row_max))[0];
}

// Computes the weights. Returns the bits of the largest product of a weight and a scale.
template <typename V, RowCode CODE>
inline __attribute__((always_inline)) float multiply_weights(ByteSoftmax& s) {
  constexpr bool kFloats = CODE == RowCode::kFloats;
  const float unit = kFloats ? 1 : kLog2E;
  const Lanes scale = Lanes{} + s.scale * unit, row_max = Lanes{} + s.row_max * unit;
  float* const scores = s.scores;
  uint8_t* const weights = s.weights;
  const float* const value_scales = s.value_scales;
  Lanes total{}, most{};
  for_seen(s, [&](int64_t i, auto whole) __attribute__((always_inline)) {
    const Lanes x = load_lanes(scores + i) * scale - row_max;
    const Lanes weight = where_seen(s, i, kFloats ? exp_lanes(x) : exp2_lanes(x), Lanes{}, whole),
                product = where_seen(s, i, weight * load_lanes(value_scales + i), Lanes{}, whole);
    total += weight;
    if constexpr (CODE == RowCode::kWords || CODE == RowCode::kBytes) {
      store_lanes(scores + i, product);
      most = larger_bits(most, product);
    } else {
      store_inputs<V, CODE>(weights, i, product);
    }
  });
  s.row_sum = s.row_sum * s.rescale + sum_lanes(total);
  return largest_of(most);
}

inline __attribute__((always_inline)) void clear_coded(uint8_t* coded, int64_t bytes) {
  if (bytes > 0) std::memset(coded, 0, bytes);
}

// In passes over all rows, too.
template <typename V, RowCode CODE>
void weigh_keys(ByteSoftmax* rows, int64_t count) {
  constexpr int64_t kRow = weight_quad_bytes(CODE) / kQuad;
  float most[kMostRegisterRows];
  for (int64_t r = 0; r < count; ++r) {
    ByteSoftmax& s = rows[r];
    s.rescale = 1;
    s.weight_scale = 1;
    const int64_t begin = s.hidden / kPanelOutputs * kPanelOutputs,
                  end = (s.seen + kPanelOutputs - 1) / kPanelOutputs * kPanelOutputs;
    if (s.hidden >= s.seen) {
      clear_coded(s.weights, s.width * kRow);
      continue;
    }
    clear_coded(s.weights, begin * kRow);
    clear_coded(s.weights + end * kRow, (s.width - end) * kRow);
    find_row_max(s);
  }
  for (int64_t r = 0; r < count; ++r)
    if (rows[r].hidden < rows[r].seen) most[r] = multiply_weights<V, CODE>(rows[r]);
  if constexpr (CODE == RowCode::kWords || CODE == RowCode::kBytes)
    for (int64_t r = 0; r < count; ++r)
      if (rows[r].hidden < rows[r].seen) round_weights<CODE>(rows[r], most[r]);
}

}  // namespace
}  // namespace valora::kernels
