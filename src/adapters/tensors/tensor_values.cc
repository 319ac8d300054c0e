#include "adapters/tensors/tensor_values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace valora::adapters {
namespace {

struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};

// A value is finite unless all its exponent bits are set. Aligned blocks of fixed size let the
// compiler vectorise.
template <typename Word, Word kExponent>
bool finite_words(std::span<const uint8_t> bytes) {
  constexpr size_t kBlock = 1024;
  Word words[kBlock];
  for (size_t begin = 0; begin < bytes.size(); begin += sizeof words) {
    const size_t size = std::min(sizeof words, bytes.size() - begin);
    if (size < sizeof words) std::memset(words, 0, sizeof words);
    std::memcpy(words, bytes.data() + begin, size);
    Word bad = 0;
    for (size_t i = 0; i < kBlock; ++i)
      bad |= static_cast<Word>((words[i] & kExponent) == kExponent);
    if (bad) return false;
  }
  return true;
}

// Without their sign bits, floating-point numbers are ordered as their bits are.
template <typename Word>
Word largest_word(std::span<const uint8_t> bytes) {
  constexpr Word kMagnitude = static_cast<Word>(~Word{0}) >> 1;
  Word largest = 0;
  for (size_t at = 0; at + sizeof(Word) <= bytes.size(); at += sizeof(Word)) {
    Word word;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    largest = std::max<Word>(largest, word & kMagnitude);
  }
  return largest;
}

float value_of(float value) { return value; }
float value_of(Half half) {
  const uint32_t exponent = half.bits >> 10 & 31, fraction = half.bits & 1023;
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                        : std::ldexp(static_cast<float>(1024 + fraction),
                                                     static_cast<int>(exponent) - 25);
  return half.bits >> 15 ? -magnitude : magnitude;
}
float value_of(BFloat value) { return std::bit_cast<float>(uint32_t{value.bits} << 16); }

template <typename T>
double sum_of_squares(std::span<const uint8_t> bytes) {
  double sum = 0;
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    const double number = value_of(value);
    sum += number * number;
  }
  return sum;
}

template <typename T>
std::vector<float> widened(std::span<const uint8_t> bytes) {
  std::vector<float> values(bytes.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    values[i] = value_of(value);
  }
  return values;
}

}  // namespace

bool is_served_dtype(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

bool all_finite(const TensorView& tensor) {
  switch (tensor.dtype) {
    case DType::kF32: return finite_words<uint32_t, 0x7F800000u>(tensor.bytes);
    case DType::kF16: return finite_words<uint16_t, 0x7C00u>(tensor.bytes);
    case DType::kBF16: return finite_words<uint16_t, 0x7F80u>(tensor.bytes);
    default: return false;
  }
}

bool all_zero(const TensorView& tensor) {
  const size_t size = dtype_size(tensor.dtype);
  // Little-endian: the sign is in a value's last byte. Most tensors end the loop at once.
  for (size_t at = 0; at < tensor.bytes.size(); ++at) {
    const uint8_t magnitude = at % size == size - 1 ? 0x7F : 0xFF;
    if (tensor.bytes[at] & magnitude) return false;
  }
  return true;
}

float largest_of(const TensorView& tensor) {
  switch (tensor.dtype) {
    case DType::kF32: return std::bit_cast<float>(largest_word<uint32_t>(tensor.bytes));
    case DType::kF16: return value_of(Half{largest_word<uint16_t>(tensor.bytes)});
    case DType::kBF16: return value_of(BFloat{largest_word<uint16_t>(tensor.bytes)});
    default: return 0;
  }
}

double norm_of(const TensorView& tensor) {
  switch (tensor.dtype) {
    case DType::kF32: return std::sqrt(sum_of_squares<float>(tensor.bytes));
    case DType::kF16: return std::sqrt(sum_of_squares<Half>(tensor.bytes));
    case DType::kBF16: return std::sqrt(sum_of_squares<BFloat>(tensor.bytes));
    default: return 0;
  }
}

std::vector<float> floats_of(const TensorView& tensor) {
  switch (tensor.dtype) {
    case DType::kF32: return widened<float>(tensor.bytes);
    case DType::kF16: return widened<Half>(tensor.bytes);
    case DType::kBF16: return widened<BFloat>(tensor.bytes);
    default: return {};
  }
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

}  // namespace valora::adapters
