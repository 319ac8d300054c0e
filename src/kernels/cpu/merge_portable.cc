#include "kernels/cpu/merge_tiles.h"
#include "kernels/cpu/vectors_portable.h"

namespace valora::kernels {

constinit const MergeBodies<bf16> kPortableMerge{merge_block<Portable>};
constinit const MergeBodies<float> kPortableFloatMerge{merge_block<PortableFloat>};

}  // namespace valora::kernels
