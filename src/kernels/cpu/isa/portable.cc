#include "kernels/cpu/isa/bytes_portable.h"
#include "kernels/cpu/isa/instantiate.h"
#include "kernels/cpu/isa/kv_portable.h"
#include "kernels/cpu/isa/vectors_portable.h"

namespace valora::kernels {

constinit const KernelSet<bf16> kPortableKernels = kernels_of<Portable, PortableFloat>();
constinit const KernelSet<float> kPortableFloatKernels = kernels_of<PortableFloat>();
constinit const ByteKernels kPortableByteKernels = byte_kernels_of<PortableBytes>();
constinit const ByteAttentionKernels kPortableByteAttention =
    byte_attention_kernels_of<PortableKv>();

}  // namespace valora::kernels
