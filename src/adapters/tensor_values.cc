#include "adapters/tensor_values.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace valora::adapters {
namespace {

// A value is finite unless all bits of its exponent are set. Aligned blocks of fixed size let the
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

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

}  // namespace valora::adapters
