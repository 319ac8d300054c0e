#ifdef __x86_64__

#include "kernels/cpu/merge_tiles.h"
#include "kernels/cpu/vectors_avx512.h"

namespace valora::kernels {

constinit const MergeBodies<bf16> kAvx512Merge{merge_block<Avx512>};
constinit const MergeBodies<float> kAvx512FloatMerge{merge_block<Avx512Float>};

}  // namespace valora::kernels

#endif
