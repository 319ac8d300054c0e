// Keys and values in 8 bits (kernels/types/forms.h): where the scales are stored, and how codes
// are decoded.
#pragma once

#include "kernels/cuda/attention.h"
#include "kernels/cuda/device/mma.cuh"
#include "kernels/cuda/device/scalar.cuh"

namespace valora::kernels::cuda {

// The address of the scale of a key or value. layer: where the layer begins in its block. row: side
// * kBlockTokens + slot.
__device__ inline const bf16* scale_at(const uint8_t* layer, int row, int kv_head, int kv_heads,
                                       int dim) {
  const int64_t codes = 2 * kBlockTokens * static_cast<int64_t>(kv_heads) * dim;
  return reinterpret_cast<const bf16*>(layer + codes) + row * kv_heads + kv_head;
}

// Decodes the lowest 8 bits of `code`. ints: KvFormat::kInt8, else kFp8.
__device__ inline float number_of(uint32_t code, bool ints) {
  if (ints) return static_cast<float>(static_cast<int8_t>(code & 0xffu));
  // The bits of e4m3 in a float's place give an exponent that is 120 too low; kRaise also divides
  // by 256.
  constexpr float kRaise = 0x1p112f;
  return __uint_as_float((code & 0x80u) << 24 | (code & 0x7fu) << 20) * kRaise;
}

// Decodes eight codes to T.
template <typename T>
__device__ inline uint4 numbers_of(const uint2& codes, float scale, bool ints) {
  uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint32_t pair = (i < 2 ? codes.x : codes.y) >> (i % 2 * 16);
    words[i] = pack<T>(number_of(pair, ints) * scale, number_of(pair >> 8, ints) * scale);
  }
  return {words[0], words[1], words[2], words[3]};
}

// Eight codes of a token's key and of its value, with their scales.
struct CodesOfToken {
  uint2 key, value;
  float key_scale, value_scale;
};

// layer: where the layer begins in the block. Returns zeros unless `valid`.
__device__ inline CodesOfToken load_codes(const uint8_t* layer, int slot, int kv_head, int kv_heads,
                                          int dim, int column, bool valid) {
  if (!valid) return {{0, 0}, {0, 0}, 0, 0};
  const int64_t row = static_cast<int64_t>(kv_heads) * dim;
  const uint8_t* key = layer + slot * row + static_cast<int64_t>(kv_head) * dim + column;
  return {
      *reinterpret_cast<const uint2*>(key),
      *reinterpret_cast<const uint2*>(key + kBlockTokens * row),
      to_float(*scale_at(layer, slot, kv_head, kv_heads, dim)),
      to_float(*scale_at(layer, static_cast<int>(kBlockTokens) + slot, kv_head, kv_heads, dim))};
}

// Decodes to shared memory: the key to `at`, the value `side_bytes` after it.
template <typename T>
__device__ inline void put_numbers(uint32_t at, int side_bytes, const CodesOfToken& codes,
                                   bool ints) {
  store_shared(at, numbers_of<T>(codes.key, codes.key_scale, ints));
  store_shared(at + side_bytes, numbers_of<T>(codes.value, codes.value_scale, ints));
}

}  // namespace valora::kernels::cuda
