#ifdef __x86_64__

#include "kernels/cpu/product_tiles.h"
#include "kernels/cpu/vectors_avx512.h"

namespace valora::kernels {

constinit const ProductBodies<bf16> kAvx512Bf16Products{multiply_product<Avx512Bf16>};

}  // namespace valora::kernels

#endif
