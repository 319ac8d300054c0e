#include "kernels/cpu/product_bodies.h"

namespace valora::kernels {

template <>
const ProductBodies<bf16>& product_bodies() {
  switch (isa()) {
#ifdef __x86_64__
    case Isa::kAvx512Bf16: return kAvx512Bf16Products;
    case Isa::kAvx512: return kAvx512Products;
    case Isa::kAvx2: return kAvx2Products;
#endif
    default: return kPortableProducts;
  }
}

template <>
const ProductBodies<float>& product_bodies() {
  switch (isa()) {
#ifdef __x86_64__
    case Isa::kAvx512Bf16:
    case Isa::kAvx512: return kAvx512FloatProducts;
    case Isa::kAvx2: return kAvx2FloatProducts;
#endif
    default: return kPortableFloatProducts;
  }
}

}  // namespace valora::kernels
