// The shape of a product, by which its tile is chosen.
#pragma once

#include <cstdint>

#include "kernels/types/processor.h"

namespace valora::kernels {

enum class ProductKind : uint8_t {
  kDense,   // n = a linear's outputs, k = its inputs; CPUs only
  kShrink,  // n = rank, k = inputs; on GPUs, n sums all linears of a launch
  kExpand,  // n = outputs, k = rank; on GPUs, n sums all linears of a launch
  // The same on GPUs, for steps with a segment of more than 64 tokens.
  kLongShrink,
  kLongExpand,
  kMerge,  // on GPUs: m = 1, n = the weights of a launch, k = their adapters' largest rank
};
constexpr bool is_shrink(ProductKind kind) {
  return kind == ProductKind::kShrink || kind == ProductKind::kLongShrink;
}
constexpr bool is_expand(ProductKind kind) {
  return kind == ProductKind::kExpand || kind == ProductKind::kLongExpand;
}
constexpr bool is_long(ProductKind kind) {
  return kind == ProductKind::kLongShrink || kind == ProductKind::kLongExpand;
}

struct ProductShape {
  ProductKind kind = ProductKind::kDense;
  bool float32 = false;  // false: bf16, or on GPUs also fp16, which uses the same tiles
  Processor processor;
  int64_t m = 0;  // tokens; on GPUs, tiles of tokens in a launch (LoraSizes)
  int64_t n = 0;  // outputs
  int64_t k = 0;  // inputs

  friend bool operator==(const ProductShape&, const ProductShape&) = default;
};

}  // namespace valora::kernels
