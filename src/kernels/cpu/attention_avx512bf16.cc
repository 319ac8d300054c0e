#ifdef __x86_64__

#include "kernels/cpu/attention_tiles.h"
#include "kernels/cpu/vectors_avx512.h"

namespace valora::kernels {

constinit const AttentionBodies<bf16> kAvx512Bf16Attention{add_values<Avx512Bf16>,
                                                           weigh<Avx512Bf16>};

}  // namespace valora::kernels

#endif
