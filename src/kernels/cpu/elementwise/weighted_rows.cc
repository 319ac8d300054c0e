#include "kernels/cpu/elementwise/elementwise.h"

#include <algorithm>

#include "kernels/cpu/isa/clones.h"

namespace valora::kernels {
namespace {

constexpr int64_t kBlock = 256;              // values whose sums stay in L1
constexpr int64_t kGrainProducts = 1 << 15;  // below this a second thread does not pay off

template <typename T>
inline __attribute__((always_inline)) void weighted_row(const T* x, const int64_t* rows,
                                                        const float* weights, int64_t count,
                                                        int64_t width, T* y) {
  for (int64_t begin = 0; begin < width; begin += kBlock) {
    const int64_t size = std::min(kBlock, width - begin);
    float sums[kBlock] = {};
    for (int64_t i = 0; i < count; ++i) {
      const T* row = x + rows[i] * width + begin;
      const float weight = weights[i];
      for (int64_t j = 0; j < size; ++j) sums[j] += weight * to_float(row[j]);
    }
    for (int64_t j = 0; j < size; ++j) y[begin + j] = from_float<T>(sums[j]);
  }
}

// target_clones does not work on templates, hence one thin function per type.
VALORA_CLONES void sum_row(const float* x, const int64_t* rows, const float* weights, int64_t count,
                           int64_t width, float* y) {
  weighted_row(x, rows, weights, count, width, y);
}
VALORA_CLONES void sum_row(const bf16* x, const int64_t* rows, const float* weights, int64_t count,
                           int64_t width, bf16* y) {
  weighted_row(x, rows, weights, count, width, y);
}

}  // namespace

template <typename T>
void weighted_rows(const T* x, const int64_t* rows, const float* weights, int64_t tokens,
                   int64_t count, int64_t width, T* y, const ParallelFor& parallel) {
  const int64_t grain = std::max<int64_t>(1, kGrainProducts / std::max<int64_t>(1, count * width));
  parallel(0, tokens, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      sum_row(x, rows + t * count, weights + t * count, count, width, y + t * width);
  });
}

template void weighted_rows(const float*, const int64_t*, const float*, int64_t, int64_t, int64_t,
                            float*, const ParallelFor&);
template void weighted_rows(const bf16*, const int64_t*, const float*, int64_t, int64_t, int64_t,
                            bf16*, const ParallelFor&);

}  // namespace valora::kernels
