// Compiled without contraction to fused multiply-adds, whose rounding would differ between
// machines.
#include "kernels/cpu/product/quantise.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/cpu/isa/clones.h"
#include "kernels/cpu/isa/to_integer.h"
#include "kernels/cpu/product/magnitude.h"
#include "kernels/types/bf16.h"

namespace valora::kernels {
namespace {

constexpr int kLanes = 16;

// 4 bits: the values to which the initial scales map a group's largest value. Values outside -8 … 7
// are clipped.
constexpr float kLargest[] = {-8, -7, -7.5f, -8.5f, -9, -9.5f, -10, 7, 7.5f, 8, 8.5f, 9};

// The value with the largest magnitude; a NaN or infinity if there is one.
float largest_of(const float* w, int64_t count) {
  const uint32_t most = largest_bits(w, count);
  for (int64_t i = 0; i < count; ++i)
    if ((std::bit_cast<uint32_t>(w[i]) & 0x7fffffffu) == most) return w[i];
  return 0;
}

inline float nearest(float x, float low, float high) {
  const float rounded = (x + kToInteger) - kToInteger;
  return std::min(std::max(rounded, low), high);
}

VALORA_CLONES float squared_error(const float* w, int64_t count, float scale, float low,
                                  float high) {
  const float inverse = 1 / scale;
  float partial[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int l = 0; l < kLanes; ++l) {
      const float off = nearest(w[i + l] * inverse, low, high) * scale - w[i + l];
      partial[l] += off * off;
    }
  for (int l = 0; i < count; ++i, ++l) {
    const float off = nearest(w[i] * inverse, low, high) * scale - w[i];
    partial[l] += off * off;
  }
  float sum = 0;
  for (const float part : partial) sum += part;
  return sum;
}

// The scale that minimises the squared error for the integers obtained with `scale`.
VALORA_CLONES float refitted(const float* w, int64_t count, float scale, float low, float high) {
  const float inverse = 1 / scale;
  float products[kLanes] = {}, squares[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int l = 0; l < kLanes; ++l) {
      const float integer = nearest(w[i + l] * inverse, low, high);
      products[l] += integer * w[i + l];
      squares[l] += integer * integer;
    }
  for (int l = 0; i < count; ++i, ++l) {
    const float integer = nearest(w[i] * inverse, low, high);
    products[l] += integer * w[i];
    squares[l] += integer * integer;
  }
  float product = 0, square = 0;
  for (int l = 0; l < kLanes; ++l) product += products[l], square += squares[l];
  return square > 0 ? product / square : 0;
}

VALORA_CLONES void round_to(const float* w, int64_t count, float scale, float low, float high,
                            uint8_t* values) {
  const float inverse = 1 / scale;
  for (int64_t i = 0; i < count; ++i)
    values[i] = static_cast<uint8_t>(static_cast<int>(nearest(w[i] * inverse, low, high) - low));
}

float bf16_of(float scale) { return to_float(from_float<bf16>(scale)); }

// 0 if no scale is usable.
float scale_of(const float* w, int64_t count, float largest, int bits, float low, float high) {
  const auto usable = [](float scale) { return std::isfinite(scale) && std::isfinite(1 / scale); };
  if (bits == 8) {
    const float scale = bf16_of(std::abs(largest) / high);
    return usable(scale) ? scale : 0;
  }
  float best = 0, least = 0;
  for (const float integer : kLargest) {
    const float first = largest / integer;
    if (!usable(first)) continue;
    const float scale = bf16_of(refitted(w, count, first, low, high));
    if (!usable(scale)) continue;
    const float error = squared_error(w, count, scale, low, high);
    if (best == 0 || error < least) best = scale, least = error;
  }
  return best;
}

}  // namespace

bool quantise_row(const float* w, int64_t k, int bits, int64_t group, uint8_t* values,
                  float* scales) {
  const auto low = static_cast<float>(-(1 << (bits - 1))), high = -low - 1;
  for (int64_t begin = 0; begin < k; begin += group) {
    const int64_t count = std::min(group, k - begin);
    const float largest = largest_of(w + begin, count);
    if (!std::isfinite(largest)) return false;
    const float scale = scale_of(w + begin, count, largest, bits, low, high);
    *scales++ = scale;
    if (scale == 0)
      std::fill_n(values + begin, count, static_cast<uint8_t>(-low));
    else
      round_to(w + begin, count, scale, low, high, values + begin);
  }
  return true;
}

}  // namespace valora::kernels
