// Look-ups of bf16 numbers by codes of 7 bits, for AVX-512 with VBMI.
#pragma once

#include <immintrin.h>

#include <array>
#include <bit>
#include <cstdint>

namespace valora::kernels {
namespace {

// The lower and the upper bytes of 128 numbers, which bf16 must represent exactly.
struct Bf16Table {
  alignas(64) std::array<uint8_t, 128> lower{}, upper{};
};

// number(code): float, for codes from 0 to 127.
template <typename Number>
consteval Bf16Table bf16_table(Number number) {
  Bf16Table table;
  for (int code = 0; code < 128; ++code) {
    const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(number(code)));
    table.lower[static_cast<size_t>(code)] = static_cast<uint8_t>(bits >> 16);
    table.upper[static_cast<size_t>(code)] = static_cast<uint8_t>(bits >> 24);
  }
  return table;
}

// The bytes of half a table for the low 7 bits of each byte of `codes`.
inline __m512i looked_up(const std::array<uint8_t, 128>& bytes, __m512i codes) {
  return _mm512_permutex2var_epi8(_mm512_load_si512(bytes.data()), codes,
                                  _mm512_load_si512(bytes.data() + 64));
}
// The same, and 0 where `mask` is.
inline __m512i looked_up(const std::array<uint8_t, 128>& bytes, __m512i codes, __mmask64 mask) {
  return _mm512_maskz_permutex2var_epi8(mask, _mm512_load_si512(bytes.data()), codes,
                                        _mm512_load_si512(bytes.data() + 64));
}

// a | (b & c)
inline __m512i or_and(__m512i a, __m512i b, __m512i c) {
  return _mm512_ternarylogic_epi32(a, b, c, 0xf8);
}

inline __m512i sign_bits() { return _mm512_set1_epi8(static_cast<char>(0x80)); }

}  // namespace
}  // namespace valora::kernels
