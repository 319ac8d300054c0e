// The products' inner functions, one table an instruction set and type: one thread, a range of
// panels.
#pragma once

#include <cstdint>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/panels.h"
#include "kernels/tiles/tile.h"

namespace valora::kernels {

enum class Finish : uint8_t {
  kStore,       // y = T(scale · sum + bias)
  kStoreFloat,  // the same in float
  kAddFloat,    // y += scale · sum, float
};

// x · wᵀ over panels [panel_begin, panel_end).
template <typename T>
struct Product {
  const T* x = nullptr;  // [m, w.k], rows ldx elements apart
  int64_t m = 0;
  int64_t ldx = 0;
  Panels<T> w;
  int64_t panel_begin = 0;
  int64_t panel_end = 0;
  Finish finish = Finish::kStore;
  float scale = 1;
  const float* bias = nullptr;  // [w.n], or none
  void* y = nullptr;            // y[0] is row 0, output first_output
  int64_t ldy = 0;
  int64_t first_output = 0;
  const T* const* fetch = nullptr;  // of each panel, as much memory again to be fetched meanwhile;
                                    // none: the next panels
  Tile tile;  // one that the body does not have is cut down to one that it has
};

template <typename T>
struct ProductBodies {
  void (*multiply)(const Product<T>& product);
};

extern const ProductBodies<bf16> kAvx512Bf16Products;
extern const ProductBodies<bf16> kAvx512Products;
extern const ProductBodies<bf16> kAvx2Products;
extern const ProductBodies<bf16> kPortableProducts;
extern const ProductBodies<float> kAvx512FloatProducts;
extern const ProductBodies<float> kAvx2FloatProducts;
extern const ProductBodies<float> kPortableFloatProducts;

// Those of isa().
template <typename T>
const ProductBodies<T>& product_bodies();

}  // namespace valora::kernels
