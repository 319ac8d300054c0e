// All kernels of an instruction set.
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

// As in the set with add_avx512bf16() alone.
void multiply_avx512bf16(const Product<bf16>& product);
void multiply_integers_avx512bf16(const IntegerProduct& product);
// As in the set with add_vnni() alone.
void multiply_bytes_vnni(const ByteProduct& product);
// The same with AMX if there are enough rows and inputs per span.
void multiply_bytes_amx(const ByteProduct& product);

}  // namespace valora::kernels
