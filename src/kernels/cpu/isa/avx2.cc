#ifdef __x86_64__

#include "kernels/cpu/isa/avx2.h"
#include "kernels/cpu/isa/instantiate.h"

namespace valora::kernels {

IsaKernels avx2_kernels() {
  return {kernels_of<Avx2, Avx2Float>(), kernels_of<Avx2Float>(), byte_kernels_of<Avx2Bytes>(),
          byte_attention_kernels_of<Avx2Kv>()};
}

}  // namespace valora::kernels

#endif
