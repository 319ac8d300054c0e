// Rows of T (float or bf16) as vectors of 16 floats, inlined into clones (isa/clones.h).
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/cpu/isa/lanes.h"
#include "kernels/types/bf16.h"

namespace valora::kernels {
namespace {

constexpr int64_t kLanes = 16;
using HalfBits = uint16_t __attribute__((vector_size(32)));
using WordBits = uint32_t __attribute__((vector_size(64)));

// p[0, count) with zeros behind it; 16 values if WHOLE.
template <bool WHOLE, typename T>
inline __attribute__((always_inline)) Lanes load_row(const T* p, int64_t count) {
  using Values = std::conditional_t<std::is_same_v<T, float>, Lanes, HalfBits>;
  Values values{};
  if constexpr (WHOLE)
    __builtin_memcpy(&values, p, sizeof values);
  else
    __builtin_memcpy(&values, p, static_cast<size_t>(count) * sizeof(T));
  if constexpr (std::is_same_v<T, float>)
    return values;
  else
    return (Lanes)(__builtin_convertvector(values, WordBits) << 16);
}

// The bits of x rounded to bf16, as the high half of each float. Nearest even; NaN stays NaN.
inline __attribute__((always_inline)) WordBits bf16_bits(Lanes x) {
  const auto bits = (WordBits)x;
  const WordBits nan = WordBits{} + 0x7fc00000u;
  return x != x ? nan : bits + 0x7fffu + ((bits >> 16) & 1u);
}

// x rounded to T.
template <typename T>
inline __attribute__((always_inline)) Lanes rounded(Lanes x) {
  if constexpr (std::is_same_v<T, float>)
    return x;
  else
    return (Lanes)(bf16_bits(x) & 0xffff0000u);
}

// Rounds x to T and writes `count` values; 16 if WHOLE.
template <bool WHOLE, typename T>
inline __attribute__((always_inline)) void store_row(T* p, Lanes x, int64_t count) {
  const auto write = [&](const auto& values) __attribute__((always_inline)) {
    if constexpr (WHOLE)
      __builtin_memcpy(p, &values, sizeof values);
    else
      __builtin_memcpy(p, &values, static_cast<size_t>(count) * sizeof(T));
  };
  if constexpr (std::is_same_v<T, float>)
    write(x);
  else
    write(__builtin_convertvector(bf16_bits(x) >> 16, HalfBits));
}

// x / (1 + e^-x), by the exponential of a negative number.
inline __attribute__((always_inline)) Lanes silu_lanes(Lanes x) {
  const Lanes e = exp_lanes(x < 0.0f ? x : -x);
  return x * (x < 0.0f ? e : Lanes{} + 1.0f) / (e + 1.0f);
}

// Calls body(i, count, whole) for each vector of n values: `whole` is std::true_type, or
// std::false_type for the rest.
template <typename Body>
inline __attribute__((always_inline)) void each_vector(int64_t n, const Body& body) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, kLanes, std::true_type{});
  if (i < n) body(i, n - i, std::false_type{});
}

}  // namespace
}  // namespace valora::kernels
