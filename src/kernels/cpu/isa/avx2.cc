#ifdef __x86_64__

#include "kernels/cpu/isa/bytes_avx2.h"
#include "kernels/cpu/isa/instantiate.h"
#include "kernels/cpu/isa/kv_avx2.h"
#include "kernels/cpu/isa/vectors_avx2.h"

namespace valora::kernels {

constinit const KernelSet<bf16> kAvx2Kernels = kernels_of<Avx2, Avx2Float>();
constinit const KernelSet<float> kAvx2FloatKernels = kernels_of<Avx2Float>();
constinit const ByteKernels kAvx2ByteKernels = byte_kernels_of<Avx2Bytes>();
constinit const ByteAttentionKernels kAvx2ByteAttention = byte_attention_kernels_of<Avx2Kv>();

}  // namespace valora::kernels

#endif
