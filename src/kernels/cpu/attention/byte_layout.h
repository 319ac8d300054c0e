// The layout of an 8-bit KV block on CPUs. Keys and values are panels of quads: four inputs of each
// of 16 outputs, a byte each, in 64 bytes, as instructions that sum four products expect them. The
// outputs and inputs of keys are tokens and dimensions, those of values dimensions and tokens
// (kv_layout.h). A head's scales follow its values, so a block can be moved by copying its bytes,
// and a head is one contiguous read.
#pragma once

#include <cstdint>
#include <span>

#include "base/threads/parallel.h"
#include "kernels/cpu/product/panels.h"
#include "kernels/types/forms.h"
#include "kernels/types/spans.h"

namespace valora::kernels {

inline constexpr int64_t kQuad = 4;  // inputs
inline constexpr int64_t kQuadBytes = kQuad * kPanelOutputs;

// A head of a block: [keys][values][key scales][value scales], with bf16 scales, [16] each.
struct ByteHead {
  int64_t dim = 0;

  constexpr int64_t key_quads() const { return (dim + kQuad - 1) / kQuad; }
  constexpr int64_t value_quads() const { return panels_of(dim) * kBlockTokens / kQuad; }
  constexpr int64_t values_at() const { return key_quads() * kQuadBytes; }
  constexpr int64_t key_scales_at() const { return values_at() + value_quads() * kQuadBytes; }
  constexpr int64_t value_scales_at() const {
    return key_scales_at() + kBlockTokens * static_cast<int64_t>(sizeof(bf16));
  }
  constexpr int64_t bytes() const {
    return value_scales_at() + kBlockTokens * static_cast<int64_t>(sizeof(bf16));
  }
};

// Bytes of one layer in a block.
constexpr int64_t kv_bytes(int64_t kv_heads, int64_t dim) {
  return kv_heads * ByteHead{dim}.bytes();
}

// One layer of an 8-bit block arena. Block b begins at data + b * block_stride (bytes).
struct ByteKvLayer {
  uint8_t* data = nullptr;
  int64_t block_stride = 0;
  int64_t kv_heads = 0;
  int64_t dim = 0;
  KvFormat format = KvFormat::kInt8;

  uint8_t* head(int64_t block, int64_t head) const {
    return data + block * block_stride + kv_bytes(head, dim);
  }
};

// Rounds x, [count], to nearest even, such that x[i] ≈ number_of(codes[i]) · result. All
// instruction sets give the same bytes. A NaN or infinity makes the scale NaN, so that all of x
// decodes to NaN. If no magnitude exceeds 2e-36, all of x may become zero.
bf16 round_to_bytes(const float* x, int64_t count, KvFormat format, uint8_t* codes);

// The number that a byte encodes, before its scale.
float number_of(uint8_t code, KvFormat format);

// Rounds the keys and values of new tokens once and writes them into their blocks. A token's bytes
// depend only on its own key and value. k, v: [tokens, kv_heads * dim], with row strides ldk and
// ldv in elements. T is float or bf16.
template <typename T>
void store_kv_bytes(const T* k, int64_t ldk, const T* v, int64_t ldv,
                    std::span<const QuerySpan> spans, const ByteKvLayer& layer,
                    const ParallelFor& parallel);

}  // namespace valora::kernels
