// The sums of a tile of rows over quads of an 8-bit KV cache, one type for each RowCode, written
// over the KvVectors of an instruction set. As in product_kernels.h, each file compiled for an
// instruction set has its own copy.
//
// KvVectors V are Vectors of float (product_kernels.h) and also provide
//   kRows                   rows per tile whose sums fit into registers
//   kCode<FORMAT>           the RowCode for rows of bf16
//   numbers<FORMAT, I>(quad)
//                           the numbers of the quad's I-th inputs, as Sums
//   decode<FORMAT>(quad, panels)
//                           stores a quad as two vectors of a panel of bf16, exactly
// and, for the codes that they use,
//   kWords:  Words, words<I>(quad), Ints, no_ints(), dot(ints, words, two), floats_of(ints)
//            int16 of the inputs I and I + 2, and their products in int32
//   kBytes:  Quads, load_quads(quad), offset_quads(quad) (128 more, unsigned), Ints,
//   ints_from(sum),
//            dot_unsigned(ints, quads, four signed), dot_signed(ints, quads, four unsigned),
//            floats_of(upper, lower) = 256 · upper + lower
//   kBf16:   Pairs, pairs<FORMAT>(quad, even, odd), dot(sums, pairs, two), rounded(lanes)
#pragma once

#include <cstring>

#include "kernels/cpu/attention/byte_attention.h"

namespace valora::kernels {
namespace {

inline __attribute__((always_inline)) int32_t four_bytes(const uint8_t* p) {
  int32_t bytes;
  std::memcpy(&bytes, p, sizeof bytes);
  return bytes;
}

// start(row, sum): sets the sums. add_key, add_value: a quad of keys or values times the row's
// inputs, which are ld bytes from row to row.
template <typename V, KvFormat FORMAT, RowCode CODE, int ROWS>
struct QuadSums;

template <typename V, KvFormat FORMAT, int ROWS>
struct QuadSums<V, FORMAT, RowCode::kFloats, ROWS> {
  typename V::Sums sums[ROWS];

  inline __attribute__((always_inline)) void start(int row, int32_t) { sums[row] = V::zero(); }
  template <int I>
  inline __attribute__((always_inline)) void add_inputs(const uint8_t* quad, const uint8_t* inputs,
                                                        int64_t ld) {
    const typename V::Sums numbers = V::template numbers<FORMAT, I>(quad);
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i)
      V::multiply_add(sums[i],
                      V::template value<0>(reinterpret_cast<const float*>(inputs + i * ld) + I),
                      numbers);
  }
  inline __attribute__((always_inline)) void add_key(const uint8_t* quad, const uint8_t* inputs,
                                                     int64_t ld) {
    add_inputs<0>(quad, inputs, ld);
    add_inputs<1>(quad, inputs, ld);
    add_inputs<2>(quad, inputs, ld);
    add_inputs<3>(quad, inputs, ld);
  }
  inline __attribute__((always_inline)) void add_value(const uint8_t* quad, const uint8_t* inputs,
                                                       int64_t ld) {
    add_key(quad, inputs, ld);
  }
  inline __attribute__((always_inline)) typename V::Sums of(int row) const { return sums[row]; }
  inline __attribute__((always_inline)) typename V::Sums score(int row) const { return of(row); }
};

template <typename V, KvFormat FORMAT, int ROWS>
struct QuadSums<V, FORMAT, RowCode::kWords, ROWS> {
  typename V::Ints sums[ROWS];

  inline __attribute__((always_inline)) void start(int row, int32_t) { sums[row] = V::no_ints(); }
  template <int I>
  inline __attribute__((always_inline)) void add_words(const uint8_t* quad, const uint8_t* inputs,
                                                       int64_t ld) {
    const typename V::Words words = V::template words<I>(quad);
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i) V::dot(sums[i], words, four_bytes(inputs + i * ld + 4 * I));
  }
  // One after the other: AVX2 has too few registers for both.
  inline __attribute__((always_inline)) void add_key(const uint8_t* quad, const uint8_t* inputs,
                                                     int64_t ld) {
    add_words<0>(quad, inputs, ld);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    add_words<1>(quad, inputs, ld);
  }
  inline __attribute__((always_inline)) void add_value(const uint8_t* quad, const uint8_t* inputs,
                                                       int64_t ld) {
    add_key(quad, inputs, ld);
  }
  inline __attribute__((always_inline)) typename V::Sums of(int row) const {
    return V::floats_of(sums[row]);
  }
  inline __attribute__((always_inline)) typename V::Sums score(int row) const { return of(row); }
};

// A tile uses one of add_key, whose sums are in `lower`, and add_value.
template <typename V, KvFormat FORMAT, int ROWS>
struct QuadSums<V, FORMAT, RowCode::kBytes, ROWS> {
  typename V::Ints upper[ROWS], lower[ROWS];

  inline __attribute__((always_inline)) void start(int row, int32_t sum) {
    upper[row] = V::ints_from(0);
    lower[row] = V::ints_from(sum);
  }
  inline __attribute__((always_inline)) void add_key(const uint8_t* quad, const uint8_t* inputs,
                                                     int64_t ld) {
    const typename V::Quads keys = V::offset_quads(quad);
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i) V::dot_unsigned(lower[i], keys, four_bytes(inputs + i * ld));
  }
  inline __attribute__((always_inline)) void add_value(const uint8_t* quad, const uint8_t* inputs,
                                                       int64_t ld) {
    const typename V::Quads values = V::load_quads(quad);
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i) {
      V::dot_signed(upper[i], values, four_bytes(inputs + i * ld));
      V::dot_signed(lower[i], values, four_bytes(inputs + i * ld + 4));
    }
  }
  inline __attribute__((always_inline)) typename V::Sums score(int row) const {
    return V::floats_of(lower[row]);
  }
  inline __attribute__((always_inline)) typename V::Sums of(int row) const {
    return V::floats_of(upper[row], lower[row]);
  }
};

// Two sums for each row, so that few rows do not wait for each other.
template <typename V, KvFormat FORMAT, int ROWS>
struct QuadSums<V, FORMAT, RowCode::kBf16, ROWS> {
  typename V::Sums first[ROWS], second[ROWS];

  inline __attribute__((always_inline)) void start(int row, int32_t) {
    first[row] = V::zero();
    second[row] = V::zero();
  }
  inline __attribute__((always_inline)) void add_key(const uint8_t* quad, const uint8_t* inputs,
                                                     int64_t ld) {
    typename V::Pairs even, odd;
    V::template pairs<FORMAT>(quad, even, odd);
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i) {
      V::dot(first[i], even, four_bytes(inputs + i * ld));
      V::dot(second[i], odd, four_bytes(inputs + i * ld + 4));
    }
  }
  inline __attribute__((always_inline)) void add_value(const uint8_t* quad, const uint8_t* inputs,
                                                       int64_t ld) {
    add_key(quad, inputs, ld);
  }
  inline __attribute__((always_inline)) typename V::Sums of(int row) const {
    return V::add(first[row], second[row]);
  }
  inline __attribute__((always_inline)) typename V::Sums score(int row) const { return of(row); }
};

}  // namespace
}  // namespace valora::kernels
