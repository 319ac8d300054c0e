// The loops around an instruction set's vectors, for the body files alone. Each instantiates them with a
// Vectors of its own in an unnamed namespace, so that the linker never takes a function compiled for one
// instruction set as that of another.
//
// A Vectors has
//   kTileSums            sums that one tile holds in registers
//   kRows, kOnePassRows  rows of a tile at most; up to kOnePassRows rows make one tile all the same,
//                        because one pass over the weights beats the better shape
//   kSteps               multiplications a pair of inputs takes: 1, or 2 (even, odd)
//   Sums                 16 outputs in fp32; zero(), add(a, b), scale_add(c, a, b) = c · a + b
//   weights<STEP>(p)     a pair of inputs' weights for 16 outputs
//   value<STEP>(x)       a row's pair of inputs; last_value(x) reads one input, the other counts as zero
//   multiply_add(sums, value, weights)
//   load(p, count), store(p, count, sums)   `count` <= 16 floats or bf16, never more memory than that
#pragma once

#include <cstdint>

#include "kernels/cpu/product_bodies.h"

namespace valora::kernels {

// What happens to a tile's finished sums.
template <typename V, typename Y>
struct StoreSums {
  const float* bias;
  Y* y;
  int64_t ldy;
  void operator()(int64_t row, int64_t column, int64_t count, typename V::Sums sums) const {
    if (bias) sums = V::add(sums, V::load(bias + column, count));
    V::store(y + row * ldy + column, count, sums);
  }
};

template <typename V>
struct AddSums {
  float coefficient;
  bf16* y;
  int64_t ldy;
  void operator()(int64_t row, int64_t column, int64_t count, typename V::Sums sums) const {
    bf16* out = y + row * ldy + column;
    V::store(out, count, V::scale_add(coefficient, sums, V::load(out, count)));
  }
};

template <typename V, int STEP, int ROWS, int PANELS, typename Value>
inline __attribute__((always_inline)) void multiply(typename V::Sums (&sums)[ROWS][PANELS], const bf16* weights,
                                                    int64_t stride, const Value& value) {
  typename V::Weights w[PANELS];
#pragma GCC unroll 8
  for (int j = 0; j < PANELS; ++j) w[j] = V::template weights<STEP>(weights + j * stride);
#pragma GCC unroll 8
  for (int i = 0; i < ROWS; ++i) {
    const auto v = value(i);
#pragma GCC unroll 8
    for (int j = 0; j < PANELS; ++j) V::multiply_add(sums[i][j], v, w[j]);
  }
}

// ROWS × PANELS sums in registers over the whole of K. With `ahead` the panels that come next are fetched
// while these are multiplied: cold weights are what small batches wait for.
template <typename V, int ROWS, int PANELS, typename Finish>
void tile(const bf16* x, int64_t row, int64_t ldx, const Panels& w, int64_t panel, bool ahead, const Finish& finish) {
  const int64_t stride = panel_elements(w.k), pairs = w.k / 2;
  const bf16* weights = w.data + panel * stride;
  const bf16* inputs = x + row * ldx;
  typename V::Sums sums[ROWS][PANELS];
#pragma GCC unroll 8
  for (int i = 0; i < ROWS; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < PANELS; ++j) sums[i][j] = V::zero();

  for (int64_t pair = 0; pair < pairs; ++pair, weights += 32, inputs += 2) {
    if (ahead)
      for (int j = 0; j < PANELS; ++j) __builtin_prefetch(weights + (PANELS + j) * stride);
    multiply<V, 0>(sums, weights, stride, [&](int i) { return V::template value<0>(inputs + i * ldx); });
    if constexpr (V::kSteps == 2) {
      // Loads from before are not kept for the second step: there are no registers left for them.
      __atomic_signal_fence(__ATOMIC_SEQ_CST);
      multiply<V, 1>(sums, weights, stride, [&](int i) { return V::template value<1>(inputs + i * ldx); });
    }
  }
  if (w.k % 2)  // the last input alone: the element behind it is not ours to read
    multiply<V, 0>(sums, weights, stride, [&](int i) { return V::last_value(inputs + i * ldx); });

#pragma GCC unroll 8
  for (int j = 0; j < PANELS; ++j) {
    const int64_t column = (panel + j) * 16;
    const int64_t count = w.n - column < 16 ? w.n - column : 16;
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; ++i) finish(row + i, column, count, sums[i][j]);
  }
}

// The tile whose ROWS are `rows`, among those whose sums fit the registers.
template <typename V, int PANELS, int ROWS = 1, typename Finish>
void rows_block(int64_t rows, const bf16* x, int64_t row, int64_t ldx, const Panels& w, int64_t panel, bool ahead,
                const Finish& finish) {
  if constexpr (ROWS <= V::kOnePassRows && ROWS * PANELS <= V::kTileSums) {
    if (rows == ROWS) return tile<V, ROWS, PANELS>(x, row, ldx, w, panel, ahead, finish);
    rows_block<V, PANELS, ROWS + 1>(rows, x, row, ldx, w, panel, ahead, finish);
  }
}

// All rows, in `blocks` even blocks, over panels in groups of PANELS; returns the first panel left over.
template <typename V, int PANELS, typename Finish>
int64_t panel_groups(int64_t blocks, const bf16* x, int64_t m, int64_t ldx, const Panels& w, int64_t panel,
                     int64_t end, const Finish& finish) {
  for (; panel + PANELS <= end; panel += PANELS)
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t row = m * b / blocks;
      const bool ahead = b == 0 && panel + 2 * PANELS <= end;
      rows_block<V, PANELS>(m * (b + 1) / blocks - row, x, row, ldx, w, panel, ahead, finish);
    }
  return panel;
}

template <typename V, typename Finish>
void product(const bf16* x, int64_t m, int64_t ldx, const Panels& w, int64_t panel, int64_t end,
             const Finish& finish) {
  if (m <= 0) return;
  const int64_t blocks = m <= V::kOnePassRows ? 1 : (m + V::kRows - 1) / V::kRows;
  const int64_t largest = (m + blocks - 1) / blocks;
  if (largest * 4 <= V::kTileSums) panel = panel_groups<V, 4>(blocks, x, m, ldx, w, panel, end, finish);
  else if (largest * 2 <= V::kTileSums) panel = panel_groups<V, 2>(blocks, x, m, ldx, w, panel, end, finish);
  panel_groups<V, 1>(blocks, x, m, ldx, w, panel, end, finish);
}

template <typename V, typename Y>
void store_product(const bf16* x, int64_t m, int64_t ldx, const Panels& w, int64_t begin, int64_t end,
                   const float* bias, Y* y, int64_t ldy) {
  product<V>(x, m, ldx, w, begin, end, StoreSums<V, Y>{bias, y, ldy});
}

template <typename V>
void add_product(const bf16* x, int64_t m, int64_t ldx, const Panels& w, int64_t begin, int64_t end,
                 float coefficient, bf16* y, int64_t ldy) {
  product<V>(x, m, ldx, w, begin, end, AddSums<V>{coefficient, y, ldy});
}

template <typename V>
constexpr ProductBodies product_bodies() {
  return {store_product<V, bf16>, store_product<V, float>, add_product<V>};
}

}  // namespace valora::kernels
