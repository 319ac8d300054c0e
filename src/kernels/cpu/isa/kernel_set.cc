#include "kernels/cpu/isa/kernel_set.h"

#include "kernels/cpu/isa/isa.h"

namespace valora::kernels {

template <>
const KernelSet<bf16>& kernel_set() {
  switch (isa()) {
#ifdef __x86_64__
    case Isa::kAvx512Bf16: return kAvx512Bf16Kernels;
    case Isa::kAvx512: return kAvx512Kernels;
    case Isa::kAvx2: return kAvx2Kernels;
#endif
    default: return kPortableKernels;
  }
}

template <>
const KernelSet<float>& kernel_set() {
  switch (isa()) {
#ifdef __x86_64__
    case Isa::kAvx512Bf16:
    case Isa::kAvx512: return kAvx512FloatKernels;
    case Isa::kAvx2: return kAvx2FloatKernels;
#endif
    default: return kPortableFloatKernels;
  }
}

}  // namespace valora::kernels
