#ifdef __x86_64__

#include "kernels/cpu/isa/instantiate.h"
#include "kernels/cpu/isa/kv_avx512.h"
#include "kernels/cpu/isa/vectors_avx512.h"

namespace valora::kernels {

constinit const KernelSet<bf16> kAvx512Kernels = kernels_of<Avx512, Avx512Float>();
constinit const KernelSet<float> kAvx512FloatKernels = kernels_of<Avx512Float>();
constinit const ByteAttentionKernels kAvx512ByteAttention = byte_attention_kernels_of<Avx512Kv>();

}  // namespace valora::kernels

#endif
