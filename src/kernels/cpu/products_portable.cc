#include "kernels/cpu/product_tiles.h"
#include "kernels/cpu/vectors_portable.h"

namespace valora::kernels {

constinit const ProductBodies<bf16> kPortableProducts{multiply_product<Portable>};
constinit const ProductBodies<float> kPortableFloatProducts{multiply_product<PortableFloat>};

}  // namespace valora::kernels
