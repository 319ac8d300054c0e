#ifdef __x86_64__

#include "kernels/cpu/isa/vnni.h"
#include "kernels/cpu/attention/byte_attention_kernels.h"
#include "kernels/cpu/isa/isa_kernels.h"
#include "kernels/cpu/product/byte_kernels.h"

namespace valora::kernels {

void add_vnni(IsaKernels& kernels) {
  kernels.bytes = byte_kernels_of<VnniBytes>();
  kernels.byte_attention = byte_attention_kernels_of<VnniKv>();
}

void multiply_bytes_vnni(const ByteProduct& product) { multiply_bytes_on<VnniBytes>(product); }

}  // namespace valora::kernels

#endif
