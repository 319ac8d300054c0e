// Branch-free scalar functions that compilers can vectorise.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/types/bf16.h"

namespace valora::kernels {

inline constexpr float kLog2E = 1.44269504088896341f;

// e^(x - n · ln 2) for |x - n · ln 2| <= ln 2 / 2, by a degree-6 polynomial. F is float or Lanes
// (lanes.h).
template <typename F>
inline __attribute__((always_inline)) F exp_of_rest(F x, F n) {
  const F r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  F p = r * 1.3888889e-3f + 8.3333333e-3f;
  p = p * r + 4.1666667e-2f;
  p = p * r + 1.6666667e-1f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  return p * r + 1.0f;
}

// e^x within 2 ulp. x is clamped to [-87, 88].
inline __attribute__((always_inline)) float exp_approx(float x) {
  x = x < -87.0f ? -87.0f : (x > 88.0f ? 88.0f : x);
  const float n = __builtin_rintf(x * kLog2E);
  return std::bit_cast<float>(std::bit_cast<int32_t>(exp_of_rest(x, n)) +
                              (static_cast<int32_t>(n) << 23));
}

// Σ a[i] · b[i] in fp32, with 16 partial sums so that the compiler vectorises it without
// -ffast-math.
template <typename A, typename B>
inline __attribute__((always_inline)) float dot(const A* a, const B* b, int64_t n) {
  constexpr int kLanes = 16;
  float partial[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int l = 0; l < kLanes; ++l) partial[l] += to_float(a[i + l]) * to_float(b[i + l]);
  float sum = 0;
  for (; i < n; ++i) sum += to_float(a[i]) * to_float(b[i]);
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) partial[l] += partial[l + half];
  return sum + partial[0];
}

// The maximum of x[0, n), ignoring NaNs; -infinity if no value remains. Uses vectors explicitly,
// because the compiler may not reorder the comparisons of a plain loop.
inline __attribute__((always_inline)) float largest(const float* x, int64_t n) {
  constexpr int kLanes = 16;
  using Lanes = float __attribute__((vector_size(4 * kLanes)));
  float best = -__builtin_inff();
  Lanes lanes = best - Lanes{};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Lanes next;
    __builtin_memcpy(&next, x + i, sizeof next);
    lanes = next > lanes ? next : lanes;
  }
  for (; i < n; ++i) best = x[i] > best ? x[i] : best;
  for (int l = 0; l < kLanes; ++l) best = lanes[l] > best ? lanes[l] : best;
  return best;
}

}  // namespace valora::kernels
