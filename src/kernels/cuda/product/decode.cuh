// Decodes a lane's integers (integer_matrix.h).
#pragma once

#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/integer_matrix.h"

namespace valora::kernels::cuda {

template <int kBits>
inline constexpr int kChunkInputs = 256 / kBits;
// The number of words that hold eight inputs of an output.
template <int kBits>
inline constexpr int kEightWords = kBits / 4;

// The words of one output (0 or 1 of the lane's two) in one step of kStepInputs within a chunk.
template <int kBits>
struct Eight {
  uint32_t words[kEightWords<kBits>];
};
template <int kBits>
__device__ inline Eight<kBits> eight_of(const uint4& lane, int step, int output) {
  if constexpr (kBits == 8)
    return output == 0 ? Eight<8>{{lane.x, lane.y}} : Eight<8>{{lane.z, lane.w}};
  else if (step == 0)
    return {{output == 0 ? lane.x : lane.y}};
  else
    return {{output == 0 ? lane.z : lane.w}};
}

// Inputs [i, i + 8) of an output, where i = input / 8 * 8.
template <int kBits>
__device__ inline Eight<kBits> load_eight(const IntegerMatrix& w, int out, int input) {
  constexpr int kWords = kEightWords<kBits>, kLaneWords = 4;
  const int lane = out % kStripOuts / 2 * 4 + input % kStepInputs / 8;
  const int chunk = input / kChunkInputs<kBits>, step = input % kChunkInputs<kBits> / kStepInputs;
  const int64_t at = (static_cast<int64_t>(out / kStripOuts) * w.chunks + chunk) * 32 + lane;
  const auto* const from =
      reinterpret_cast<const uint32_t*>(w.data) + at * kLaneWords + (step * 2 + out % 2) * kWords;
  Eight<kBits> eight;
#pragma unroll
  for (int i = 0; i < kWords; ++i) eight.words[i] = __ldg(from + i);
  return eight;
}

// Integer i, as kernels/types/packed.h lays it out.
template <int kBits>
__device__ inline uint32_t integer_of(const Eight<kBits>& from, int i) {
  if constexpr (kBits == 8)
    return from.words[i / 4] >> (i % 4 * 8) & 0xffu;
  else
    return from.words[0] >> (i / 2 * 4 + i % 2 * 16) & 0xfu;
}

// Byte i of a word as a float plus 2^23: exact, and needs no conversion.
__device__ inline float raised_byte(uint32_t word, int i) {
  return __uint_as_float(__byte_perm(word, 0x4b000000u, 0x7440u + static_cast<unsigned>(i)));
}
inline constexpr float kRaise = 8388608.0f;

// Eight inputs minus the zero-point, in fp32: exact.
template <int kBits>
__device__ inline void decode(const Eight<kBits>& from, float zero, float (&values)[8]) {
  if constexpr (kBits == 8) {
    const float raised = kRaise + zero;
#pragma unroll
    for (int i = 0; i < 8; ++i) values[i] = raised_byte(from.words[i / 4], i % 4) - raised;
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i)
      values[i] = static_cast<float>(integer_of(from, i)) - zero;
  }
}

// The same as pairs of T, which represents all differences of 8-bit integers exactly.
template <typename T, int kBits>
__device__ inline void decode(const Eight<kBits>& from, float zero, uint32_t (&pairs)[4]) {
  // Or-ing an integer into the lowest bits of a power of two in T adds the integer to it.
  constexpr bool kIsFp16 = std::is_same_v<T, fp16>;
  constexpr uint32_t kPower = kIsFp16 ? 0x64006400u : 0x43004300u;
  constexpr float kOfPower = kIsFp16 ? 1024.0f : 128.0f;
  if constexpr (kBits == 4) {
    const uint32_t offset = pack<T>(kOfPower + zero, kOfPower + zero);
#pragma unroll
    for (int s = 0; s < 4; ++s)
      pairs[s] = subtract<T>((from.words[0] >> (4 * s) & 0x000f000fu) | kPower, offset);
  } else if constexpr (kIsFp16) {
    const uint32_t offset = pack<T>(kOfPower + zero, kOfPower + zero);
#pragma unroll
    for (int s = 0; s < 4; ++s)
      pairs[s] = subtract<T>(__byte_perm(from.words[s / 2], kPower, s % 2 == 0 ? 0x5150u : 0x5352u),
                             offset);
  } else {
    float values[8];
    decode<kBits>(from, zero, values);
#pragma unroll
    for (int s = 0; s < 4; ++s) pairs[s] = pack<T>(values[2 * s], values[2 * s + 1]);
  }
}

// The scales, zero-points and minimums of a lane's two outputs in a group. least: zeros without
// minimums.
struct GroupOfPair {
  float2 scale, zero, least;
};
// For outputs 2g and 2g + 1 of a strip.
__device__ inline GroupOfPair group_of(const IntegerMatrix& w, int strip, int input, int g) {
  // The padding of the inputs belongs to the last group.
  const int whole = w.group_shift >= 0 ? input >> w.group_shift : input / w.group;
  const int group = min(whole, w.groups - 1);
  const int64_t at = (static_cast<int64_t>(strip) * w.groups + group) * kStripOuts + 2 * g;
  const std::byte* const scales = w.data + w.scales_at;
  GroupOfPair pair{{0, 0}, {0, 0}, {0, 0}};
  if (w.scales == Dtype::kFloat) {
    pair.scale = *reinterpret_cast<const float2*>(scales + 4 * at);
  } else {
    const uint32_t raw = *reinterpret_cast<const uint32_t*>(scales + 2 * at);
    pair.scale = w.scales == Dtype::kBf16 ? unpack<bf16>(raw) : unpack<fp16>(raw);
  }
  if (w.minimums) {
    pair.least = *reinterpret_cast<const float2*>(w.data + w.zeros_at + 4 * at);
  } else if (w.zeros) {
    const uint32_t raw = *reinterpret_cast<const uint16_t*>(w.data + w.zeros_at + at);
    pair.zero = {static_cast<float>(raw & 0xffu), static_cast<float>(raw >> 8)};
  } else {
    const auto middle = static_cast<float>(1 << (w.bits - 1));
    pair.zero = {middle, middle};
  }
  return pair;
}

}  // namespace valora::kernels::cuda
