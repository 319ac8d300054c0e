// Integer elements of weights that stay packed while products run, by their number of bits. A new
// one needs its layout here, its decoding by each instruction set (cpu/product/integer_kernels.h,
// byte_kernels.h) and by GPUs (cuda/product/decode.cuh). If it has as many bits as another, it is
// known by a number of its own, and kBits is that of its bits.
#pragma once

#include <cstdint>
#include <type_traits>

namespace valora::kernels {

// An output's inputs lie in words of 32 bits: kWordInputs in each, input i from bit shift(i) on.
// kMiddle: the integer of 0 where no zero-points are stored.
template <int BITS>
struct Packed;

template <>
struct Packed<4> {
  static constexpr int kBits = 4, kMiddle = 8;
  static constexpr int64_t kWordInputs = 8;
  // A shift brings a pair of inputs to the low ends of the halves of a word.
  static constexpr int shift(int64_t i) { return static_cast<int>(i / 2 * 4 + i % 2 * 16); }
};

template <>
struct Packed<8> {
  static constexpr int kBits = 8, kMiddle = 128;
  static constexpr int64_t kWordInputs = 4;
  static constexpr int shift(int64_t i) { return static_cast<int>(8 * i); }
};

// The integer at input i of a word.
template <int BITS>
constexpr uint32_t unpacked(uint32_t word, int64_t i) {
  return word >> Packed<BITS>::shift(i) & ((1u << Packed<BITS>::kBits) - 1);
}

constexpr bool is_packed(int bits) { return bits == 4 || bits == 8; }

// Calls body with `bits` as a std::integral_constant.
template <typename Body>
constexpr decltype(auto) with_bits(int bits, const Body& body) {
  if (bits == 4) return body(std::integral_constant<int, 4>());
  return body(std::integral_constant<int, 8>());
}

constexpr int bits_of(int element) {
  return with_bits(element, [](auto bits) { return Packed<bits>::kBits; });
}
constexpr int middle_of(int element) {
  return with_bits(element, [](auto bits) { return Packed<bits>::kMiddle; });
}

// A value for each element.
template <typename T>
struct PerBits {
  T four, eight;
  constexpr const T& operator[](int bits) const { return bits == 4 ? four : eight; }
};
// make(bits): the value, from a std::integral_constant.
template <typename T, typename Make>
constexpr PerBits<T> per_bits(const Make& make) {
  return {make(std::integral_constant<int, 4>()), make(std::integral_constant<int, 8>())};
}

}  // namespace valora::kernels
