#ifdef __x86_64__

#include "kernels/cpu/isa/avxvnni.h"
#include "kernels/cpu/attention/byte_attention_kernels.h"
#include "kernels/cpu/isa/isa_kernels.h"
#include "kernels/cpu/product/byte_kernels.h"

namespace valora::kernels {

void add_avxvnni(IsaKernels& kernels) {
  kernels.bytes = byte_kernels_of<AvxVnniBytes>();
  kernels.byte_attention = byte_attention_kernels_of<AvxVnniKv>();
}

}  // namespace valora::kernels

#endif
