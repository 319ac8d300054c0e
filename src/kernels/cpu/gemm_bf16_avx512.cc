#include "kernels/cpu/gemm_bf16_avx512.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

namespace valora::kernels::avx512 {
namespace {

__mmask16 columns_mask(int64_t remaining) {
  return remaining >= 16 ? __mmask16(0xffff) : __mmask16((1u << remaining) - 1);
}

// What happens to a finished accumulator of 16 outputs.
struct StoreBf16 {
  const float* bias;
  bf16* y;
  int64_t ldy;
  void operator()(int64_t row, int64_t column, __mmask16 mask, __m512 acc) const {
    if (bias) acc = _mm512_add_ps(acc, _mm512_maskz_loadu_ps(mask, bias + column));
    _mm256_mask_storeu_epi16(y + row * ldy + column, mask, (__m256i)_mm512_cvtneps_pbh(acc));
  }
};

struct StoreFloat {
  const float* bias;
  float* y;
  int64_t ldy;
  void operator()(int64_t row, int64_t column, __mmask16 mask, __m512 acc) const {
    if (bias) acc = _mm512_add_ps(acc, _mm512_maskz_loadu_ps(mask, bias + column));
    _mm512_mask_storeu_ps(y + row * ldy + column, mask, acc);
  }
};

struct AddBf16 {
  __m512 coefficient;
  bf16* y;
  int64_t ldy;
  void operator()(int64_t row, int64_t column, __mmask16 mask, __m512 acc) const {
    bf16* out = y + row * ldy + column;
    const __m512i bits = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, out));
    const __m512 old = _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
    acc = _mm512_fmadd_ps(coefficient, acc, old);
    _mm256_mask_storeu_epi16(out, mask, (__m256i)_mm512_cvtneps_pbh(acc));
  }
};

__m512bh broadcast_pair(const bf16* x) {
  int32_t pair;
  std::memcpy(&pair, x, sizeof pair);
  return (__m512bh)_mm512_set1_epi32(pair);
}

// ROWS × PANELS accumulators in registers over the whole of K. With `ahead` the panels that come next
// are fetched while these are multiplied: cold weights are what small batches wait for.
template <int ROWS, int PANELS, typename Epilogue>
void tile(const bf16* x, int64_t row, int64_t ldx, const Panels& w, int64_t panel, bool ahead, const Epilogue& finish) {
  const int64_t stride = panel_elements(w.k);
  const bf16* panels = w.data + panel * stride;
  const bf16* rows = x + row * ldx;
  __m512 acc[ROWS][PANELS];
  for (int i = 0; i < ROWS; ++i)
    for (int j = 0; j < PANELS; ++j) acc[i][j] = _mm512_setzero_ps();

  const auto multiply = [&](int64_t pair, const auto& load_row) __attribute__((always_inline)) {
    __m512bh weights[PANELS];
    for (int j = 0; j < PANELS; ++j) {
      const bf16* at = panels + j * stride + pair * 32;
      weights[j] = (__m512bh)_mm512_loadu_si512(at);
      if (ahead) _mm_prefetch(reinterpret_cast<const char*>(at + PANELS * stride), _MM_HINT_T0);
    }
    for (int i = 0; i < ROWS; ++i) {
      const __m512bh value = load_row(i, pair);
      for (int j = 0; j < PANELS; ++j) acc[i][j] = _mm512_dpbf16_ps(acc[i][j], value, weights[j]);
    }
  };
  for (int64_t pair = 0; pair < w.k / 2; ++pair)
    multiply(pair, [&](int i, int64_t p) __attribute__((always_inline)) { return broadcast_pair(rows + i * ldx + 2 * p); });
  if (w.k % 2)  // the last input alone: the element behind it is not ours to read
    multiply(w.k / 2, [&](int i, int64_t p) __attribute__((always_inline)) {
      return (__m512bh)_mm512_set1_epi32(rows[i * ldx + 2 * p].bits);
    });

  for (int j = 0; j < PANELS; ++j) {
    const int64_t column = (panel + j) * 16;
    const __mmask16 mask = columns_mask(w.n - column);
    for (int i = 0; i < ROWS; ++i) finish(row + i, column, mask, acc[i][j]);
  }
}

template <int PANELS, typename Epilogue>
void rows_block(int rows, const bf16* x, int64_t row, int64_t ldx, const Panels& w, int64_t panel, bool ahead,
                const Epilogue& finish) {
  switch (rows) {
    case 1: return tile<1, PANELS>(x, row, ldx, w, panel, ahead, finish);
    case 2: return tile<2, PANELS>(x, row, ldx, w, panel, ahead, finish);
    case 3: return tile<3, PANELS>(x, row, ldx, w, panel, ahead, finish);
    case 4: return tile<4, PANELS>(x, row, ldx, w, panel, ahead, finish);
    case 5: return tile<5, PANELS>(x, row, ldx, w, panel, ahead, finish);
    default: return tile<6, PANELS>(x, row, ldx, w, panel, ahead, finish);
  }
}

// 6 × 4 accumulators and the 5 registers that feed them fill the 32 vector registers.
template <int PANELS, typename Epilogue>
void panel_group(const bf16* x, int64_t m, int64_t ldx, const Panels& w, int64_t panel, int64_t panel_end,
                 const Epilogue& finish) {
  const int64_t blocks = (m + 5) / 6;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t row = m * b / blocks;
    const bool ahead = b == 0 && panel + 2 * PANELS <= panel_end;
    rows_block<PANELS>(static_cast<int>(m * (b + 1) / blocks - row), x, row, ldx, w, panel, ahead, finish);
  }
}

template <typename Epilogue>
void all_panels(const bf16* x, int64_t m, int64_t ldx, const Panels& w, int64_t begin, int64_t end,
                const Epilogue& finish) {
  int64_t panel = begin;
  if (m == 7 || m == 8) {  // one pass over the weights instead of two
    for (; panel + 2 <= end; panel += 2) {
      const bool ahead = panel + 4 <= end;
      if (m == 8) tile<8, 2>(x, 0, ldx, w, panel, ahead, finish);
      else tile<7, 2>(x, 0, ldx, w, panel, ahead, finish);
    }
  } else {
    for (; panel + 4 <= end; panel += 4) panel_group<4>(x, m, ldx, w, panel, end, finish);
  }
  for (; panel < end; ++panel) panel_group<1>(x, m, ldx, w, panel, end, finish);
}

}  // namespace

template <>
void gemm_tile_store(const bf16* x, int64_t m, int64_t ldx, const Panels& w, int64_t begin, int64_t end,
                     const float* bias, bf16* y, int64_t ldy) {
  all_panels(x, m, ldx, w, begin, end, StoreBf16{bias, y, ldy});
}

template <>
void gemm_tile_store(const bf16* x, int64_t m, int64_t ldx, const Panels& w, int64_t begin, int64_t end,
                     const float* bias, float* y, int64_t ldy) {
  all_panels(x, m, ldx, w, begin, end, StoreFloat{bias, y, ldy});
}

void gemm_tile_add(const bf16* x, int64_t m, int64_t ldx, const Panels& w, int64_t begin, int64_t end,
                   float coefficient, bf16* y, int64_t ldy) {
  all_panels(x, m, ldx, w, begin, end, AddBf16{_mm512_set1_ps(coefficient), y, ldy});
}

}  // namespace valora::kernels::avx512
