#ifdef __x86_64__

#include "kernels/cpu/attention/byte_attention_kernels.h"
#include "kernels/cpu/isa/kv_vbmi.h"

namespace valora::kernels {

constinit const ByteAttentionKernels kVbmiByteAttention = byte_attention_kernels_of<VbmiKv>();

}  // namespace valora::kernels

#endif
