#ifdef __x86_64__

#include "kernels/cpu/attention_tiles.h"
#include "kernels/cpu/vectors_avx512.h"

namespace valora::kernels {

constinit const AttentionBodies<bf16> kAvx512Attention{add_values<Avx512>, weigh<Avx512>};
constinit const AttentionBodies<float> kAvx512FloatAttention{add_values<Avx512Float>,
                                                             weigh<Avx512Float>};

}  // namespace valora::kernels

#endif
