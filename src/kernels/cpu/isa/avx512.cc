#ifdef __x86_64__

#include "kernels/cpu/isa/avx512.h"
#include "kernels/cpu/isa/instantiate.h"

namespace valora::kernels {

IsaKernels avx512_kernels() {
  return {kernels_of<Avx512, Avx512Float>(),
          kernels_of<Avx512Float>(),
          {},
          byte_attention_kernels_of<Avx512Kv>()};
}

}  // namespace valora::kernels

#endif
