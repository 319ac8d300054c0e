#ifdef __x86_64__

#include "kernels/cpu/isa/vbmi.h"
#include "kernels/cpu/attention/byte_attention_kernels.h"
#include "kernels/cpu/isa/isa_kernels.h"
#include "kernels/cpu/product/integer_kernels.h"

namespace valora::kernels {

namespace {

void multiply_integers_vbmi(const IntegerProduct& p) {
  constexpr int kRows = VbmiBf16::kLookUpRows;
  if (p.w.bits == 8 && p.m > 0 && p.m <= kRows)
    return multiply_few_from<VbmiBf16, IntegerSource<VbmiBf16, 8>, kRows>(p);
  multiply_integers_avx512bf16(p);
}

}  // namespace

void add_vbmi(IsaKernels& kernels) {
  kernels.of_bf16.multiply_integers = multiply_integers_vbmi;
  kernels.byte_attention = byte_attention_kernels_of<VbmiKv>();
}

}  // namespace valora::kernels

#endif
