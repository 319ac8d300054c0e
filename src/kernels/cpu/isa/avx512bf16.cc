#ifdef __x86_64__

#include "kernels/cpu/isa/instantiate.h"
#include "kernels/cpu/isa/vectors_avx512.h"

namespace valora::kernels {

constinit const KernelSet<bf16> kAvx512Bf16Kernels = kernels_of<Avx512Bf16>();

}  // namespace valora::kernels

#endif
