#include "models/quantised/gguf_blocks.h"

#include <c10/util/Half.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "ops/device/parallel.h"

namespace valora::models {
namespace {

float half_at(const uint8_t* bytes) {
  uint16_t bits;
  std::memcpy(&bits, bytes, sizeof bits);
  return static_cast<float>(c10::Half(bits, c10::Half::from_bits()));
}

// Destination of a block's integers and its groups' scales and minimums.
struct BlockTarget {
  uint8_t* values;
  float *scales, *minimums;
};

// The low nibbles hold the first half of a group, the high nibbles the second half.
void read_nibbles(const uint8_t* bytes, uint8_t* values) {
  for (int i = 0; i < 16; ++i) {
    values[i] = bytes[i] & 15;
    values[i + 16] = bytes[i] >> 4;
  }
}
void add_fifth_bits(const uint8_t* bytes, uint8_t* values) {
  uint32_t bits;
  std::memcpy(&bits, bytes, sizeof bits);
  for (int i = 0; i < 32; ++i) values[i] |= (bits >> i & 1) << 4;
}

void read_q4_0(const uint8_t* block, const BlockTarget& to) {
  to.scales[0] = half_at(block);
  read_nibbles(block + 2, to.values);
}
void read_q4_1(const uint8_t* block, const BlockTarget& to) {
  to.scales[0] = half_at(block);
  to.minimums[0] = half_at(block + 2);
  read_nibbles(block + 4, to.values);
}
void read_q5_0(const uint8_t* block, const BlockTarget& to) {
  to.scales[0] = half_at(block);
  read_nibbles(block + 6, to.values);
  add_fifth_bits(block + 2, to.values);
  for (int i = 0; i < 32; ++i) to.values[i] += 128 - 16;
}
void read_q5_1(const uint8_t* block, const BlockTarget& to) {
  to.scales[0] = half_at(block);
  to.minimums[0] = half_at(block + 2);
  read_nibbles(block + 8, to.values);
  add_fifth_bits(block + 4, to.values);
}
void read_q8_0(const uint8_t* block, const BlockTarget& to) {
  to.scales[0] = half_at(block);
  for (int i = 0; i < 32; ++i) to.values[i] = block[2 + i] ^ 128;
}

// The scales and minimums of a super-block's eight groups: 6 bits each, packed into twelve bytes,
// times the fp16 scales that precede them.
void read_group_parts(const uint8_t* block, const BlockTarget& to) {
  const float scale = half_at(block), minimum = half_at(block + 2);
  const uint8_t* bytes = block + 4;
  for (int g = 0; g < 8; ++g) {
    const int of_scale = g < 4 ? bytes[g] & 63 : (bytes[g + 4] & 15) | bytes[g - 4] >> 6 << 4;
    const int of_minimum = g < 4 ? bytes[g + 4] & 63 : bytes[g + 4] >> 4 | bytes[g] >> 6 << 4;
    to.scales[g] = scale * static_cast<float>(of_scale);
    to.minimums[g] = -(minimum * static_cast<float>(of_minimum));
  }
}
void read_q4_k(const uint8_t* block, const BlockTarget& to) {
  read_group_parts(block, to);
  for (int g = 0; g < 8; ++g)
    for (int i = 0; i < 32; ++i) {
      const uint8_t byte = block[16 + g / 2 * 32 + i];
      to.values[g * 32 + i] = g % 2 == 0 ? byte & 15 : byte >> 4;
    }
}
void read_q5_k(const uint8_t* block, const BlockTarget& to) {
  read_group_parts(block, to);
  for (int g = 0; g < 8; ++g)
    for (int i = 0; i < 32; ++i) {
      const uint8_t byte = block[48 + g / 2 * 32 + i], fifth = block[16 + i] >> g & 1;
      to.values[g * 32 + i] =
          static_cast<uint8_t>((g % 2 == 0 ? byte & 15 : byte >> 4) | fifth << 4);
    }
}
// 128 values: the low four bits are in 64 bytes, the high two in 32.
void read_q6_k(const uint8_t* block, const BlockTarget& to) {
  const float scale = half_at(block + 208);
  for (int g = 0; g < 16; ++g)
    to.scales[g] = scale * static_cast<float>(static_cast<int8_t>(block[192 + g]));
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, quarter = i % 128 / 32, at = i % 32;
    const uint8_t low = block[half * 64 + quarter % 2 * 32 + at],
                  high = block[128 + half * 32 + at];
    const int value = (quarter < 2 ? low & 15 : low >> 4) | (high >> (2 * quarter) & 3) << 4;
    to.values[i] = static_cast<uint8_t>(value - 32 + 128);
  }
}

// 256 values of two bits: each byte of a quarter of the 64 holds the values of four groups of 32.
void read_two_bits(const uint8_t* bytes, uint8_t* values) {
  for (int i = 0; i < 256; ++i)
    values[i] = bytes[i / 128 * 32 + i % 32] >> (2 * (i % 128 / 32)) & 3;
}
void read_q2_k(const uint8_t* block, const BlockTarget& to) {
  const float scale = half_at(block + 80), minimum = half_at(block + 82);
  for (int g = 0; g < 16; ++g) {
    to.scales[g] = scale * static_cast<float>(block[g] & 15);
    to.minimums[g] = -(minimum * static_cast<float>(block[g] >> 4));
  }
  read_two_bits(block + 16, to.values);
}
// The third bit is in 32 bytes, one bit per group of 32; if it is unset, 4 is subtracted. The
// scales have 6 bits: four in eight bytes, two in four.
void read_q3_k(const uint8_t* block, const BlockTarget& to) {
  const float scale = half_at(block + 108);
  const uint8_t* const scales = block + 96;
  for (int g = 0; g < 16; ++g) {
    const int low = g < 8 ? scales[g] & 15 : scales[g - 8] >> 4,
              high = scales[8 + g % 4] >> (2 * (g / 4)) & 3;
    to.scales[g] = scale * static_cast<float>((low | high << 4) - 32);
  }
  read_two_bits(block + 32, to.values);
  for (int i = 0; i < 256; ++i)
    to.values[i] = static_cast<uint8_t>(to.values[i] + 4 + 4 * (block[i % 32] >> (i / 32) & 1));
}

// The values that four bits stand for.
constexpr std::array<int8_t, 16> kUneven = {-127, -104, -83, -65, -49, -35, -22, -10,
                                            1,    13,   25,  38,  53,  69,  89,  113};
void read_uneven(const uint8_t* bytes, uint8_t* values) {
  read_nibbles(bytes, values);
  for (int i = 0; i < 32; ++i) values[i] = static_cast<uint8_t>(kUneven[values[i]] + 128);
}
void read_iq4_nl(const uint8_t* block, const BlockTarget& to) {
  to.scales[0] = half_at(block);
  read_uneven(block + 2, to.values);
}
void read_iq4_xs(const uint8_t* block, const BlockTarget& to) {
  const float scale = half_at(block);
  for (int g = 0; g < 8; ++g) {
    const int low = block[4 + g / 2] >> (g % 2 * 4) & 15,
              high = block[2 + g / 4] >> (2 * (g % 4)) & 3;
    to.scales[g] = scale * static_cast<float>((low | high << 4) - 32);
    read_uneven(block + 8 + g * 16, to.values + g * 32);
  }
}

using BlockReader = void (*)(const uint8_t* block, const BlockTarget& to);
BlockReader reader_of(GgufType type) {
  switch (type) {
    case GgufType::kQ4_0: return read_q4_0;
    case GgufType::kQ4_1: return read_q4_1;
    case GgufType::kQ5_0: return read_q5_0;
    case GgufType::kQ5_1: return read_q5_1;
    case GgufType::kQ8_0: return read_q8_0;
    case GgufType::kQ2_K: return read_q2_k;
    case GgufType::kQ3_K: return read_q3_k;
    case GgufType::kQ4_K: return read_q4_k;
    case GgufType::kQ5_K: return read_q5_k;
    case GgufType::kQ6_K: return read_q6_k;
    case GgufType::kIQ4_NL: return read_iq4_nl;
    case GgufType::kIQ4_XS: return read_iq4_xs;
    default: return nullptr;
  }
}

}  // namespace

BlockIntegers integers_of_blocks(GgufType type) {
  switch (type) {
    case GgufType::kQ4_0: return {{4, 32}, true, false};
    case GgufType::kQ4_1:
    case GgufType::kQ4_K: return {{4, 32}, true, true};
    case GgufType::kQ5_1:
    case GgufType::kQ5_K: return {{8, 32}, true, true};
    case GgufType::kQ2_K: return {{4, 16}, true, true};
    case GgufType::kQ3_K: return {{4, 16}, true, false};
    case GgufType::kQ6_K: return {{8, 16}, true, false};
    default: return {{8, 32}, true, false};
  }
}

ops::QuantisedTensor read_blocks(GgufType type, const at::Tensor& bytes) {
  const GgufBlock& block = block_of(type);
  const auto [form, float_scales, has_minimums] = integers_of_blocks(type);
  const auto block_bytes = static_cast<int64_t>(block.bytes);
  const int64_t rows = bytes.size(0), blocks = bytes.size(1) / block_bytes,
                groups = block.values / form.group;
  ops::QuantisedTensor made{at::empty({rows, blocks * block.values}, at::kByte),
                            form.bits,
                            at::empty({rows, blocks * groups}, at::kFloat),
                            {},
                            form.group};
  if (has_minimums)
    made.minimums = at::empty({rows, blocks * groups}, at::kFloat);
  else
    made.zeros = at::full({rows, blocks * groups}, 1 << (form.bits - 1), at::kByte);
  const auto* from = bytes.const_data_ptr<uint8_t>();
  auto* values = made.values.mutable_data_ptr<uint8_t>();
  auto* scales = made.scales.mutable_data_ptr<float>();
  auto* minimums = has_minimums ? made.minimums.mutable_data_ptr<float>() : nullptr;
  const BlockReader read = reader_of(type);
  ops::torch_parallel()(0, rows * blocks, 256, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      read(from + b * block_bytes, {values + b * block.values, scales + b * groups,
                                    has_minimums ? minimums + b * groups : nullptr});
  });
  return made;
}

at::Tensor decode_blocks(GgufType type, const at::Tensor& bytes, at::ScalarType dtype) {
  constexpr int64_t kValuesTogether = 1 << 22;
  const GgufBlock& block = block_of(type);
  const int64_t rows = bytes.size(0),
                in = bytes.size(1) / static_cast<int64_t>(block.bytes) * block.values,
                together = std::max<int64_t>(1, kValuesTogether / std::max<int64_t>(in, 1));
  at::Tensor values = at::empty({rows, in}, dtype);
  for (int64_t row = 0; row < rows; row += together) {
    const int64_t end = std::min(rows, row + together);
    values.slice(0, row, end).copy_(read_blocks(type, bytes.slice(0, row, end)).decoded());
  }
  return values;
}

at::Tensor rows_of_halves(int64_t rows, int64_t head) {
  return at::arange(rows, at::kLong).view({-1, head / 2, 2}).transpose(1, 2).reshape({-1});
}

}  // namespace valora::models
