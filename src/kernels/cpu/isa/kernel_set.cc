#include "kernels/cpu/isa/kernel_set.h"

#include "kernels/cpu/isa/isa.h"

namespace valora::kernels {
#ifdef __x86_64__
namespace {

const KernelSet<bf16>& bf16_kernels() {
  static const KernelSet<bf16> kernels = [] {
    KernelSet<bf16> set = kAvx512Bf16Kernels;
    if (__builtin_cpu_supports("avx512vbmi")) set.multiply_integers = multiply_integers_vbmi;
    return set;
  }();
  return kernels;
}

}  // namespace
#endif

template <>
const KernelSet<bf16>& kernel_set() {
  switch (isa()) {
#ifdef __x86_64__
    case Isa::kAvx512Bf16: return bf16_kernels();
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
