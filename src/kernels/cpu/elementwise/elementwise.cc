#include "kernels/cpu/elementwise/elementwise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/isa/clones.h"
#include "kernels/cpu/isa/vector_math.h"

namespace valora::kernels {
namespace {

constexpr int64_t kGrainElements = 16384;  // below this a second thread does not pay off

int64_t grain_rows(int64_t width) {
  return std::max<int64_t>(1, kGrainElements / std::max<int64_t>(1, width));
}

template <typename T>
inline __attribute__((always_inline)) void rms_norm_row(T* x, const T* residual, const T* weight,
                                                        float offset, float eps, int64_t width,
                                                        T* y) {
  if (residual)
    for (int64_t i = 0; i < width; ++i)
      x[i] = from_float<T>(to_float(x[i]) + to_float(residual[i]));
  const float scale = 1.0f / std::sqrt(dot(x, x, width) / static_cast<float>(width) + eps);
  for (int64_t i = 0; i < width; ++i)
    y[i] = from_float<T>(to_float(x[i]) * scale * (to_float(weight[i]) + offset));
}

template <typename T>
inline __attribute__((always_inline)) void rotate_row(T* x, int64_t heads, int64_t ldh, int64_t dim,
                                                      const float* cos, const float* sin) {
  const int64_t half = dim / 2;
  for (int64_t h = 0; h < heads; ++h, x += ldh)
    for (int64_t i = 0; i < half; ++i) {
      const float a = to_float(x[i]), b = to_float(x[half + i]);
      x[i] = from_float<T>(a * cos[i] - b * sin[i]);
      x[half + i] = from_float<T>(b * cos[i] + a * sin[i]);
    }
}

template <typename T>
inline __attribute__((always_inline)) void round_span(const float* x, int64_t count, T* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = from_float<T>(x[i]);
}

template <typename T>
inline __attribute__((always_inline)) void silu_mul_span(const float* gate, const float* up,
                                                         int64_t count, T* y) {
  for (int64_t i = 0; i < count; ++i) {
    y[i] = from_float<T>(gate[i] / (1.0f + exp_approx(-gate[i])) * up[i]);
  }
}

// Because tanh(x) = 2 · sigmoid(2x) - 1, the activation is x · sigmoid(2√(2/π) · (x + 0.044715 ·
// x³)).
template <typename T>
inline __attribute__((always_inline)) void gelu_tanh_mul_span(const float* gate, const float* up,
                                                              int64_t count, T* y) {
  constexpr float kTwice = 1.59576912160573f, kCubic = 0.044715f;
  for (int64_t i = 0; i < count; ++i) {
    const float x = gate[i], inner = kTwice * (x + kCubic * x * x * x);
    y[i] = from_float<T>(x / (1.0f + exp_approx(-inner)) * up[i]);
  }
}

template <typename T>
inline __attribute__((always_inline)) void quick_gelu_elements(const T* x, int64_t count, T* y) {
  for (int64_t i = 0; i < count; ++i) {
    const float v = to_float(x[i]);
    y[i] = from_float<T>(v / (1.0f + exp_approx(-1.702f * v)));
  }
}

// target_clones does not work on templates, hence one thin function per type.
VALORA_CLONES void norm_row(float* x, const float* r, const float* w, float o, float e, int64_t n,
                            float* y) {
  rms_norm_row(x, r, w, o, e, n, y);
}
VALORA_CLONES void norm_row(bf16* x, const bf16* r, const bf16* w, float o, float e, int64_t n,
                            bf16* y) {
  rms_norm_row(x, r, w, o, e, n, y);
}
VALORA_CLONES void rotate(float* x, int64_t h, int64_t l, int64_t d, const float* c,
                          const float* s) {
  rotate_row(x, h, l, d, c, s);
}
VALORA_CLONES void rotate(bf16* x, int64_t h, int64_t l, int64_t d, const float* c,
                          const float* s) {
  rotate_row(x, h, l, d, c, s);
}
VALORA_CLONES void silu_span(const float* g, const float* u, int64_t n, float* y) {
  silu_mul_span(g, u, n, y);
}
// The maximum of a block. Sets `numbers` to false if a value is NaN or +infinity.
VALORA_CLONES float block_largest(const float* x, int64_t n, bool& numbers) {
  int32_t others = 0;
  for (int64_t i = 0; i < n; ++i) others |= !(x[i] < __builtin_inff());
  numbers = numbers && !others;
  return largest(x, n);
}

constexpr int64_t kMaskBits = 32;

inline __attribute__((always_inline)) void keep_bits(float* x, int64_t n, uint32_t bits) {
  for (int64_t i = 0; i < n; ++i) x[i] = (bits >> i & 1) ? x[i] : -__builtin_inff();
}
VALORA_CLONES void keep_words(float* x, int64_t words, const uint32_t* allowed) {
  for (int64_t w = 0; w < words; ++w)
    if (~allowed[w]) keep_bits(x + w * kMaskBits, kMaskBits, allowed[w]);
}

VALORA_CLONES void silu_span(const float* g, const float* u, int64_t n, bf16* y) {
  silu_mul_span(g, u, n, y);
}
VALORA_CLONES void gelu_tanh_span(const float* g, const float* u, int64_t n, float* y) {
  gelu_tanh_mul_span(g, u, n, y);
}
VALORA_CLONES void gelu_tanh_span(const float* g, const float* u, int64_t n, bf16* y) {
  gelu_tanh_mul_span(g, u, n, y);
}
VALORA_CLONES void quick_gelu_span(const float* x, int64_t n, float* y) {
  quick_gelu_elements(x, n, y);
}
VALORA_CLONES void quick_gelu_span(const bf16* x, int64_t n, bf16* y) {
  quick_gelu_elements(x, n, y);
}
VALORA_CLONES void round_to(const float* x, int64_t n, float* y) { round_span(x, n, y); }
VALORA_CLONES void round_to(const float* x, int64_t n, bf16* y) { round_span(x, n, y); }

}  // namespace

template <typename T>
void quick_gelu(const T* x, int64_t count, T* y, const ParallelFor& parallel) {
  parallel(0, count, kGrainElements,
           [&](int64_t begin, int64_t end) { quick_gelu_span(x + begin, end - begin, y + begin); });
}

template <typename T>
void round_rows(const float* x, int64_t rows, int64_t width, T* y, int64_t ldy) {
  for (int64_t t = 0; t < rows; ++t) round_to(x + t * width, width, y + t * ldy);
}

template <typename T>
void gate_rows(Gate activation, const float* gate, const float* up, int64_t rows, int64_t width,
               T* y, int64_t ldy) {
  for (int64_t t = 0; t < rows; ++t)
    if (activation == Gate::kSilu)
      silu_span(gate + t * width, up + t * width, width, y + t * ldy);
    else
      gelu_tanh_span(gate + t * width, up + t * width, width, y + t * ldy);
}

template <typename T>
void rms_norm(T* x, const T* residual, const T* weight, float offset, float eps, int64_t rows,
              int64_t width, T* y, const ParallelFor& parallel) {
  parallel(0, rows, grain_rows(width), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      norm_row(x + t * width, residual ? residual + t * width : nullptr, weight, offset, eps, width,
               y + t * width);
  });
}

Argmax argmax(const float* x, int64_t n) {
  constexpr int64_t kBlock = 1024;
  Argmax best{0, -std::numeric_limits<float>::infinity(), true};
  int64_t block = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const float top = block_largest(x + begin, std::min(kBlock, n - begin), best.numbers);
    if (top > best.value) best.value = top, block = begin;
  }
  const float* end = x + std::min(n, block + kBlock);
  best.index = std::find(x + block, end, best.value) - x;
  if (best.index == end - x) best.index = block;  // all values are -infinity or NaN
  return best;
}

void keep_allowed(float* x, int64_t n, const uint32_t* allowed) {
  const int64_t words = n / kMaskBits, rest = n % kMaskBits;
  keep_words(x, words, allowed);
  if (rest > 0) keep_bits(x + n - rest, rest, allowed[words]);
}

template <typename T>
void rotate_half(T* x, int64_t rows, int64_t ldx, int64_t heads, int64_t ldh, int64_t dim,
                 const float* cos, const float* sin, const ParallelFor& parallel) {
  parallel(0, rows, grain_rows(heads * dim), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      rotate(x + t * ldx, heads, ldh, dim, cos + t * (dim / 2), sin + t * (dim / 2));
  });
}

#define VALORA_INSTANTIATE(T)                                                               \
  template void rms_norm(T*, const T*, const T*, float, float, int64_t, int64_t, T*,        \
                         const ParallelFor&);                                               \
  template void quick_gelu(const T*, int64_t, T*, const ParallelFor&);                      \
  template void round_rows(const float*, int64_t, int64_t, T*, int64_t);                    \
  template void gate_rows(Gate, const float*, const float*, int64_t, int64_t, T*, int64_t); \
  template void rotate_half(T*, int64_t, int64_t, int64_t, int64_t, int64_t, const float*,  \
                            const float*, const ParallelFor&);
VALORA_INSTANTIATE(float)
VALORA_INSTANTIATE(bf16)

#undef VALORA_INSTANTIATE

}  // namespace valora::kernels
