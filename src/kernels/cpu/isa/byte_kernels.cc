#include "kernels/cpu/attention/byte_attention.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/product/byte_product.h"

namespace valora::kernels {
#ifdef __x86_64__
namespace {

bool has_vnni() { return __builtin_cpu_supports("avx512vnni"); }
bool has_vbmi() { return has_vnni() && __builtin_cpu_supports("avx512vbmi"); }

}  // namespace
#endif

const ByteKernels& byte_kernels() {
#ifdef __x86_64__
  switch (isa()) {
    case Isa::kAvx512Bf16:
    case Isa::kAvx512:
      if (has_vnni()) return kVnniByteKernels;
      [[fallthrough]];
    case Isa::kAvx2: return kAvx2ByteKernels;
    case Isa::kPortable: break;
  }
#endif
  return kPortableByteKernels;
}

const ByteFormatKernels& byte_attention(KvFormat format) {
  const auto of = [&](const ByteAttentionKernels& kernels) -> const ByteFormatKernels& {
    return format == KvFormat::kInt8 ? kernels.int8 : kernels.fp8;
  };
#ifdef __x86_64__
  switch (isa()) {
    case Isa::kAvx512Bf16:
      if (has_vbmi()) return of(kVbmiByteAttention);
      [[fallthrough]];
    case Isa::kAvx512: return of(has_vnni() ? kVnniByteAttention : kAvx512ByteAttention);
    case Isa::kAvx2: return of(kAvx2ByteAttention);
    case Isa::kPortable: break;
  }
#endif
  return of(kPortableByteAttention);
}

}  // namespace valora::kernels
