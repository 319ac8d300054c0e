#ifdef __aarch64__

#include "kernels/cpu/isa/neon.h"
#include "kernels/cpu/isa/instantiate.h"

namespace valora::kernels {

IsaKernels neon_kernels() {
  return {kernels_of<Neon, NeonFloat>(), kernels_of<NeonFloat>(), byte_kernels_of<NeonBytes>(),
          byte_attention_kernels_of<NeonKv>()};
}

}  // namespace valora::kernels

#endif
