// Which tile a product takes (DESIGN §4, VaLoRA §4.3 and Alg. 2): a pure function of its shape and of the table
// in use. Never a failure: an exact entry, else the nearest one, else a formula.
#pragma once

#include <cstdint>

#include "kernels/cpu/isa.h"
#include "kernels/tiles/tile.h"

namespace valora::kernels {

enum class ProductKind : uint8_t { kDense, kShrink, kExpand };

struct ProductShape {
  ProductKind kind = ProductKind::kDense;
  bool float32 = false;  // else bf16
  Isa isa = Isa::kPortable;
  int64_t m = 0;  // tokens
  int64_t n = 0;  // outputs
  int64_t k = 0;  // inputs
};

// The formula alone.
Tile formula_tile(const ProductShape& shape);
Tile choose_tile(const ProductShape& shape);

}  // namespace valora::kernels
