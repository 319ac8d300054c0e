// The products' inner functions, one table an instruction set: one thread, a range of panels.
#pragma once

#include <cstdint>

#include "kernels/cpu/gemm_bf16.h"
#include "kernels/cpu/isa.h"

namespace valora::kernels {

// y = x · wᵀ (+ bias) over panels [panel_begin, panel_end).
template <typename Y>
using StoreProduct = void (*)(const bf16* x, int64_t m, int64_t ldx, const Panels& w, int64_t panel_begin,
                              int64_t panel_end, const float* bias, Y* y, int64_t ldy);

// y += coefficient · x · wᵀ, added in fp32 and rounded once.
using AddProduct = void (*)(const bf16* x, int64_t m, int64_t ldx, const Panels& w, int64_t panel_begin,
                            int64_t panel_end, float coefficient, bf16* y, int64_t ldy);

struct ProductBodies {
  StoreProduct<bf16> store_bf16;
  StoreProduct<float> store_float;
  AddProduct add_bf16;
};

extern const ProductBodies kAvx512Bf16Products;
extern const ProductBodies kAvx512Products;
extern const ProductBodies kAvx2Products;
extern const ProductBodies kPortableProducts;

}  // namespace valora::kernels
