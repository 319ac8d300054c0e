#ifdef __x86_64__

#include "kernels/cpu/merge_tiles.h"
#include "kernels/cpu/vectors_avx2.h"

namespace valora::kernels {

constinit const MergeBodies<bf16> kAvx2Merge{merge_block<Avx2>};
constinit const MergeBodies<float> kAvx2FloatMerge{merge_block<Avx2Float>};

}  // namespace valora::kernels

#endif
