// Compiled without contraction to fused multiply-adds, whose rounding would differ between
// machines.
#include "kernels/cpu/attention/byte_layout.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/cpu/attention/block_parts.h"
#include "kernels/cpu/isa/clones.h"
#include "kernels/cpu/isa/to_integer.h"
#include "kernels/cpu/product/magnitude.h"

namespace valora::kernels {
namespace {

constexpr float kMostInt8 = 127, kMostFp8 = 448, kFp8Unit = 256;

// The bf16 scale may be smaller than the exact one, so the largest value may exceed 127 slightly:
// clamp.
VALORA_CLONES void to_int8(const float* x, int64_t count, float inverse, uint8_t* codes) {
  for (int64_t i = 0; i < count; ++i) {
    const float y = std::min(std::max(x[i] * inverse, -kMostInt8), kMostInt8);
    codes[i] = static_cast<uint8_t>(static_cast<int32_t>((y + kToInteger) - kToInteger));
  }
}

VALORA_CLONES void to_fp8(const float* x, int64_t count, float inverse, uint8_t* codes) {
  constexpr uint32_t kLeastNormal = (127 - 6) << 23;
  constexpr float kToSubnormals = 1 << (23 - 9);  // adding it rounds to a multiple of 2^-9
  for (int64_t i = 0; i < count; ++i) {
    const float y = x[i] * inverse;
    const uint32_t sign = std::bit_cast<uint32_t>(y) >> 31 << 7;
    const float size =
        std::min(std::bit_cast<float>(std::bit_cast<uint32_t>(y) & 0x7fffffffu), kMostFp8);
    const uint32_t bits = std::bit_cast<uint32_t>(size);
    const uint32_t normal = ((bits + 0x7ffffu + (bits >> 20 & 1u)) >> 20) - ((127 - 7) << 3);
    const uint32_t small = std::bit_cast<uint32_t>(size + kToSubnormals) & 0xffu;
    codes[i] = static_cast<uint8_t>(sign | (bits < kLeastNormal ? small : normal));
  }
}

// The byte of output j, input i in a panel of quads.
constexpr int64_t quad_index(int64_t j, int64_t i) {
  return (i / kQuad * kPanelOutputs + j) * kQuad + i % kQuad;
}

// Writes the codes of a token's key into its slot of a panel of tokens, with zeros up to whole
// quads.
void put_key(const uint8_t* codes, int64_t dim, int64_t slot, uint8_t* keys) {
  for (int64_t i = 0; i < dim; ++i) keys[quad_index(slot, i)] = codes[i];
  for (int64_t i = dim; i % kQuad != 0; ++i) keys[quad_index(slot, i)] = 0;
}

// Writes the codes of a token's value, with zeros for padding outputs, because sums use whole
// panels.
void put_value(const uint8_t* codes, int64_t dim, int64_t slot, uint8_t* values) {
  for (int64_t i = 0; i < panels_of(dim) * kPanelOutputs; ++i)
    values[i / kPanelOutputs * kPanelOutputs * kBlockTokens + quad_index(i % kPanelOutputs, slot)] =
        i < dim ? codes[i] : 0;
}

void put_scale(bf16 scale, int64_t slot, uint8_t* scales) {
  reinterpret_cast<bf16*>(scales)[slot] = scale;
}

// A token's key or value vector of one head, in fp32 and as codes.
struct TokenVector {
  std::vector<float> floats;
  std::vector<uint8_t> codes;

  template <typename T>
  bf16 round(const T* x, int64_t dim, KvFormat format) {
    floats.resize(dim);
    codes.resize(dim);
    for (int64_t i = 0; i < dim; ++i) floats[i] = to_float(x[i]);
    return round_to_bytes(floats.data(), dim, format, codes.data());
  }
};

template <typename T>
void store_token_bytes(const T* key, const T* value, int64_t dim, KvFormat format, int64_t slot,
                       uint8_t* head, TokenVector& memory) {
  const ByteHead form{dim};
  put_scale(memory.round(key, dim, format), slot, head + form.key_scales_at());
  put_key(memory.codes.data(), dim, slot, head);
  put_scale(memory.round(value, dim, format), slot, head + form.value_scales_at());
  put_value(memory.codes.data(), dim, slot, head + form.values_at());
}

}  // namespace

float number_of(uint8_t code, KvFormat format) {
  if (format == KvFormat::kInt8) return static_cast<int8_t>(code);
  const int exponent = code >> 3 & 15, fraction = code & 7;
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -9)
                                   : std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
  return (code & 0x80 ? -size : size) / kFp8Unit;
}

bf16 round_to_bytes(const float* x, int64_t count, KvFormat format, uint8_t* codes) {
  const auto most = std::bit_cast<float>(largest_bits(x, count));
  const bool ints = format == KvFormat::kInt8;
  const bf16 scale = from_float<bf16>(most / (ints ? kMostInt8 : kMostFp8 / kFp8Unit));
  const float exact = to_float(scale), inverse = (ints ? 1.0f : kFp8Unit) / exact;
  std::fill_n(codes, count, uint8_t{0});
  if (!(most <= std::numeric_limits<float>::max()) || std::isinf(exact))
    return from_float<bf16>(std::numeric_limits<float>::quiet_NaN());
  if (exact < std::numeric_limits<float>::min() || std::isinf(inverse)) return {};
  if (ints)
    to_int8(x, count, inverse, codes);
  else
    to_fp8(x, count, inverse, codes);
  return scale;
}

template <typename T>
void store_kv_bytes(const T* k, int64_t ldk, const T* v, int64_t ldv,
                    std::span<const QuerySpan> spans, const ByteKvLayer& layer,
                    const ParallelFor& parallel) {
  const std::vector<BlockPart> parts = parts_of(spans);
  const int64_t dim = layer.dim, grain = parts_grain(layer.kv_heads * dim);
  parallel(0, static_cast<int64_t>(parts.size()), grain, [&](int64_t begin, int64_t end) {
    thread_local TokenVector memory;
    for (int64_t i = begin; i < end; ++i) {
      const BlockPart& part = parts[i];
      for (int64_t position = part.first; position < part.last; ++position)
        for (int64_t head = 0; head < layer.kv_heads; ++head)
          store_token_bytes(k + part.row(position) * ldk + head * dim,
                            v + part.row(position) * ldv + head * dim, dim, layer.format,
                            position % kBlockTokens, layer.head(part.block(), head), memory);
    }
  });
}

#define VALORA_INSTANTIATE(T)                                                                    \
  template void store_kv_bytes(const T*, int64_t, const T*, int64_t, std::span<const QuerySpan>, \
                               const ByteKvLayer&, const ParallelFor&);
VALORA_INSTANTIATE(float)
VALORA_INSTANTIATE(bf16)
#undef VALORA_INSTANTIATE

}  // namespace valora::kernels
