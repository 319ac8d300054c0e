#ifdef __x86_64__

#include "kernels/cpu/product_tiles.h"
#include "kernels/cpu/vectors_avx2.h"

namespace valora::kernels {

constinit const ProductBodies<bf16> kAvx2Products{multiply_product<Avx2>};
constinit const ProductBodies<float> kAvx2FloatProducts{multiply_product<Avx2Float>};

}  // namespace valora::kernels

#endif
