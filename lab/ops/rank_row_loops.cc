#include "lab/ops/rank_row_loops.h"

#include <algorithm>

#include "kernels/cpu/isa/clones.h"

namespace valora::bench {

using kernels::bf16;
using kernels::from_float;
using kernels::to_float;

VALORA_CLONES float dot_row(const bf16* x, const bf16* row, int64_t count) {
  constexpr int kLanes = 64;
  float sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int j = 0; j < kLanes; ++j) sums[j] += to_float(x[i + j]) * to_float(row[i + j]);
  for (; i < count; ++i) sums[0] += to_float(x[i]) * to_float(row[i]);
  float sum = 0;
  for (const float s : sums) sum += s;
  return sum;
}

namespace {

template <typename T>
__attribute__((always_inline)) inline void add_rows_to(const float* low, const bf16* const* rows,
                                                       int64_t rank, int64_t count, T* y) {
  constexpr int64_t kPiece = 128;  // number of sums kept in registers
  for (int64_t begin = 0; begin < count; begin += kPiece) {
    float sums[kPiece];
    const int64_t width = std::min(kPiece, count - begin);
    for (int64_t i = 0; i < width; ++i) sums[i] = to_float(y[begin + i]);
    if (width == kPiece) {
      for (int64_t r = 0; r < rank; ++r)
        for (int64_t i = 0; i < kPiece; ++i) sums[i] += low[r] * to_float(rows[r][begin + i]);
    } else {
      for (int64_t r = 0; r < rank; ++r)
        for (int64_t i = 0; i < width; ++i) sums[i] += low[r] * to_float(rows[r][begin + i]);
    }
    for (int64_t i = 0; i < width; ++i) y[begin + i] = from_float<T>(sums[i]);
  }
}

}  // namespace

VALORA_CLONES void add_rows(const float* low, const bf16* const* rows, int64_t rank, int64_t count,
                            bf16* y) {
  add_rows_to(low, rows, rank, count, y);
}
VALORA_CLONES void add_rows(const float* low, const bf16* const* rows, int64_t rank, int64_t count,
                            float* y) {
  add_rows_to(low, rows, rank, count, y);
}

}  // namespace valora::bench
