#ifdef __x86_64__

#include "kernels/cpu/attention_tiles.h"
#include "kernels/cpu/vectors_avx2.h"

namespace valora::kernels {

constinit const AttentionBodies<bf16> kAvx2Attention{add_values<Avx2>, weigh<Avx2>};
constinit const AttentionBodies<float> kAvx2FloatAttention{add_values<Avx2Float>, weigh<Avx2Float>};

}  // namespace valora::kernels

#endif
