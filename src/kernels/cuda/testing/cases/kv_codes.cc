#include "kernels/cuda/testing/cases/kv_codes.h"

#include <algorithm>
#include <cmath>

namespace valora::kernels::cuda {
namespace {

// The number of a code, without its scale. NaN if the code stands for no number.
double number_of_code(int code, KvFormat format) {
  if (format == KvFormat::kInt8) return code == 128 ? NAN : code < 128 ? code : code - 256;
  const int exponent = code >> 3 & 15, fraction = code & 7;
  if (exponent == 15 && fraction == 7) return NAN;
  const double size =
      exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
  return (code & 128 ? -size : size) / 256;
}

// The code of the nearest number; of two equally near, the even code.
uint8_t nearest_code(float x, KvFormat format) {
  int best = 0;
  double least = HUGE_VAL;
  for (int code = 0; code < 256; ++code) {
    const double number = number_of_code(code, format), off = std::abs(number - x);
    if (std::isnan(number) ||
        (number == 0 && std::signbit(number) != std::signbit(x) && format == KvFormat::kFp8))
      continue;
    if (off < least || (off == least && code % 2 == 0)) best = code, least = off;
  }
  return static_cast<uint8_t>(best);
}

}  // namespace

KvCodes codes_of(const float* x, int64_t count, KvFormat format) {
  float most = 0;
  for (int64_t i = 0; i < count; ++i) most = std::max(most, std::abs(x[i]));
  KvCodes made;
  made.scale =
      kernels::from_float<kernels::bf16>(most / (format == KvFormat::kInt8 ? 127.0f : 1.75f));
  const float scale = kernels::to_float(made.scale);
  for (int64_t i = 0; i < count; ++i) {
    // Divides as the kernels do, so that both see the same ties.
    const float scaled =
        format == KvFormat::kInt8 ? x[i] * (1 / scale) : x[i] * (256 / scale) / 256;
    const uint8_t code = scale > 0 ? nearest_code(scaled, format) : 0;
    made.codes.push_back(code);
    made.numbers.push_back(static_cast<float>(number_of_code(code, format)) * scale);
  }
  return made;
}

}  // namespace valora::kernels::cuda
