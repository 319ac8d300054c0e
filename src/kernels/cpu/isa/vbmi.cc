#ifdef __x86_64__

#include "kernels/cpu/attention/byte_attention_kernels.h"
#include "kernels/cpu/isa/kernel_set.h"
#include "kernels/cpu/isa/kv_vbmi.h"
#include "kernels/cpu/isa/vectors_vbmi.h"
#include "kernels/cpu/product/integer_kernels.h"

namespace valora::kernels {

constinit const ByteAttentionKernels kVbmiByteAttention = byte_attention_kernels_of<VbmiKv>();

void multiply_integers_vbmi(const IntegerProduct& p) {
  constexpr int kRows = VbmiBf16::kLookUpRows;
  if (p.w.bits == 8 && p.m > 0 && p.m <= kRows)
    return multiply_few_from<VbmiBf16, ByteSource<VbmiBf16>, kRows>(p);
  kAvx512Bf16Kernels.multiply_integers(p);
}

}  // namespace valora::kernels

#endif
