#ifdef __aarch64__

#include "kernels/cpu/isa/neonbf16.h"
#include "kernels/cpu/isa/instantiate.h"

namespace valora::kernels {

void add_neonbf16(IsaKernels& kernels) {
  kernels.of_bf16 = kernels_of<NeonBf16, NeonFloat>();
  kernels.bytes = byte_kernels_of<NeonMixedBytes>();
  kernels.byte_attention = byte_attention_kernels_of<NeonMixedKv>();
}

}  // namespace valora::kernels

#endif
