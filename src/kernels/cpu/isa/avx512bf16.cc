#ifdef __x86_64__

#include "kernels/cpu/isa/avx512.h"
#include "kernels/cpu/isa/instantiate.h"

namespace valora::kernels {

void add_avx512bf16(IsaKernels& kernels) { kernels.of_bf16 = kernels_of<Avx512Bf16>(); }

void multiply_avx512bf16(const Product<bf16>& product) { multiply_product<Avx512Bf16>(product); }

void multiply_integers_avx512bf16(const IntegerProduct& product) {
  multiply_integers_on<Avx512Bf16>(product);
}

}  // namespace valora::kernels

#endif
