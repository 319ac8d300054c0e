#include "kernels/cuda/testing/values.h"

#include <cuda_fp16.h>

#include <cmath>
#include <cstring>

#include "kernels/types/bf16.h"

namespace valora::kernels::cuda {

const char* name_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBf16: return "bf16";
    case Dtype::kFp16: return "fp16";
    case Dtype::kFloat: break;
  }
  return "fp32";
}

double unit_roundoff(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBf16: return std::ldexp(1.0, -8);
    case Dtype::kFp16: return std::ldexp(1.0, -11);
    case Dtype::kFloat: break;
  }
  return std::ldexp(1.0, -24);
}

float rounded(float value, Dtype dtype) {
  switch (dtype) {
    case Dtype::kBf16: return kernels::to_float(kernels::from_float<kernels::bf16>(value));
    case Dtype::kFp16: return __half2float(__float2half_rn(value));
    case Dtype::kFloat: break;
  }
  return value;
}

void pack(const float* values, size_t count, Dtype dtype, std::byte* to) {
  if (dtype == Dtype::kFloat) {
    if (count > 0) std::memcpy(to, values, count * sizeof(float));
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    if (dtype == Dtype::kBf16) {
      const auto v = kernels::from_float<kernels::bf16>(values[i]);
      std::memcpy(to + 2 * i, &v, 2);
    } else {
      const __half v = __float2half_rn(values[i]);
      std::memcpy(to + 2 * i, &v, 2);
    }
  }
}

std::vector<float> unpack(const std::vector<std::byte>& bytes, Dtype dtype) {
  std::vector<float> values(bytes.size() / size_of(dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == Dtype::kFloat) {
      std::memcpy(&values[i], bytes.data() + 4 * i, 4);
    } else if (dtype == Dtype::kBf16) {
      kernels::bf16 v;
      std::memcpy(&v, bytes.data() + 2 * i, 2);
      values[i] = kernels::to_float(v);
    } else {
      __half v;
      std::memcpy(&v, bytes.data() + 2 * i, 2);
      values[i] = __half2float(v);
    }
  }
  return values;
}

uint64_t Random::next() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15ULL;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
  return z ^ z >> 31;
}

float Random::uniform(float low, float high) {
  return low + (high - low) * static_cast<float>(next() >> 40) * 0x1p-24f;
}

std::vector<float> Random::values(size_t count, Dtype dtype, float size) {
  std::vector<float> values(count);
  for (float& v : values) v = rounded(uniform(-size, size), dtype);
  return values;
}

void DeviceValues::set(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * size_of(dtype_));
  pack(values.data(), values.size(), dtype_, bytes.data());
  memory_.upload(bytes.data(), bytes.size());
}

}  // namespace valora::kernels::cuda
