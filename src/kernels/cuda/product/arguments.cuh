// Arguments and helpers that the kernels of integer products share.
#pragma once

#include <type_traits>

#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/integer_product.h"
#include "kernels/cuda/product/decode.cuh"
#include "kernels/types/packed.h"

namespace valora::kernels::cuda {

template <typename T>
struct IntegerOutput {
  IntegerMatrix w;
  const T* bias;
  T* y;
  int64_t y_stride;
  float* sums;
  bool y_pairs;  // y may be accessed two elements at a time
};

template <typename T>
struct IntegerArguments {
  const T* x;
  int64_t x_stride;
  int tokens, in;
  IntegerOutput<T> slices[kMaxIntegerSlices];
};

template <typename T>
IntegerArguments<T> integer_arguments(const IntegerCall& call) {
  IntegerArguments<T> a{};
  a.x = static_cast<const T*>(call.x), a.x_stride = call.x_stride;
  a.tokens = call.tokens, a.in = call.in;
  for (int i = 0; i < call.slice_count; ++i) {
    const IntegerSlice& s = call.slices[i];
    const bool pairs = s.y_stride % 2 == 0 && reinterpret_cast<uintptr_t>(s.y) % 4 == 0;
    a.slices[i] = {s.w,    static_cast<const T*>(s.bias), static_cast<T*>(s.y), s.y_stride,
                   s.sums, pairs && sizeof(T) == 2};
  }
  return a;
}

// Writes outputs out (even) and out + 1 (odd) of a token.
template <typename T>
__device__ inline void write_pair(const IntegerOutput<T>& s, int token, int out, float first,
                                  float second) {
  const bool both = out + 1 < s.w.n;
  if (out >= s.w.n) return;
  if (s.bias != nullptr) {
    first += to_float(s.bias[out]);
    if (both) second += to_float(s.bias[out + 1]);
  }
  if (s.sums != nullptr) {
    float* const to = s.sums + static_cast<int64_t>(token) * s.w.n + out;
    to[0] = first;
    if (both) to[1] = second;
  }
  if (s.y == nullptr) return;
  T* const y = s.y + token * s.y_stride + out;
  if constexpr (sizeof(T) == 2)
    if (both && s.y_pairs) {
      *reinterpret_cast<uint32_t*>(y) = pack<T>(first, second);
      return;
    }
  y[0] = from_float<T>(first);
  if (both) y[1] = from_float<T>(second);
}

// A lane's 16 bytes of a chunk of a strip. Indices beyond the last strip or chunk give the last
// one.
__device__ inline uint4 load_chunk(const IntegerMatrix& w, int strip, int chunk, int lane) {
  constexpr int kLanes = 32;
  const auto at =
      static_cast<int64_t>(min(strip, w.strips - 1)) * w.chunks + min(chunk, w.chunks - 1);
  return __ldg(reinterpret_cast<const uint4*>(w.data) + at * kLanes + lane);
}

inline constexpr int kMostRowTokens = 32;

// All slices of a call are of one kind: the same bits, and all or none with minimums.
// For few tokens, at most kMostRowTokens, on tensor cores: rows of x must be 16-byte aligned, and
// `in` a multiple of 8.
Status integer_rows(const IntegerCall& call, Stream stream);
// For many tokens.
Status integer_tiles(const IntegerCall& call, Stream stream);
// Without tensor cores, for any dtype and any alignment.
Status integer_plain(const IntegerCall& call, Stream stream);

// Calls body(bits, minimums), both std::integral_constant, with the kind of all slices.
template <typename Body>
Status with_integer_kind(const IntegerCall& call, const Body& body) {
  const IntegerMatrix& w = call.slices[0].w;
  return with_bits(w.bits, [&](auto bits) {
    return w.minimums ? body(bits, std::true_type{}) : body(bits, std::false_type{});
  });
}

// The largest number of strips in any slice.
inline int most_strips(const IntegerCall& call) {
  int most = 0;
  for (int i = 0; i < call.slice_count; ++i)
    most = call.slices[i].w.strips > most ? call.slices[i].w.strips : most;
  return most;
}

}  // namespace valora::kernels::cuda
