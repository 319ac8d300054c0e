#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/product/byte_product.h"

namespace valora::kernels {

const ByteKernels& byte_kernels() {
#ifdef __x86_64__
  switch (isa()) {
    case Isa::kAvx512Bf16:
    case Isa::kAvx512:
      if (__builtin_cpu_supports("avx512vnni")) return kVnniByteKernels;
      [[fallthrough]];
    case Isa::kAvx2: return kAvx2ByteKernels;
    case Isa::kPortable: break;
  }
#endif
  return kPortableByteKernels;
}

}  // namespace valora::kernels
