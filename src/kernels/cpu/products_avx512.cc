#ifdef __x86_64__

#include "kernels/cpu/product_tiles.h"
#include "kernels/cpu/vectors_avx512.h"

namespace valora::kernels {

constinit const ProductBodies<bf16> kAvx512Products{multiply_product<Avx512>};
constinit const ProductBodies<float> kAvx512FloatProducts{multiply_product<Avx512Float>};

}  // namespace valora::kernels

#endif
