// All kernels of an instruction set. Each function below is in a source of its name, the only one
// compiled for its instructions: call it on CPUs that have them (isa.cc).
#pragma once

#include "kernels/cpu/attention/byte_attention.h"
#include "kernels/cpu/isa/kernel_set.h"
#include "kernels/cpu/product/byte_product.h"

namespace valora::kernels {

struct IsaKernels {
  KernelSet<bf16> of_bf16;
  KernelSet<float> of_float;
  ByteKernels bytes;
  ByteAttentionKernels byte_attention;
};

IsaKernels portable_kernels();
IsaKernels avx2_kernels();
IsaKernels avx512_kernels();  // without `bytes`
IsaKernels neon_kernels();
// Replace the kernels that these instructions make faster.
void add_avx512bf16(IsaKernels& kernels);
void add_vnni(IsaKernels& kernels);
void add_vbmi(IsaKernels& kernels);
void add_avxvnni(IsaKernels& kernels);
void add_neonbf16(IsaKernels& kernels);

// As in the set with add_avx512bf16() alone.
void multiply_integers_avx512bf16(const IntegerProduct& product);

}  // namespace valora::kernels
