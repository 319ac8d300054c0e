#ifdef __x86_64__

#include "kernels/cpu/attention/byte_attention_kernels.h"
#include "kernels/cpu/isa/bytes_vnni.h"
#include "kernels/cpu/isa/kv_vnni.h"
#include "kernels/cpu/product/byte_kernels.h"

namespace valora::kernels {

constinit const ByteKernels kVnniByteKernels = byte_kernels_of<VnniBytes>();
constinit const ByteAttentionKernels kVnniByteAttention = byte_attention_kernels_of<VnniKv>();

}  // namespace valora::kernels

#endif
