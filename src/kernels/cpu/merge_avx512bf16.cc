#ifdef __x86_64__

#include "kernels/cpu/merge_tiles.h"
#include "kernels/cpu/vectors_avx512.h"

namespace valora::kernels {

constinit const MergeBodies<bf16> kAvx512Bf16Merge{merge_block<Avx512Bf16>};

}  // namespace valora::kernels

#endif
