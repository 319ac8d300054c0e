#include "kernels/cpu/attention_tiles.h"
#include "kernels/cpu/vectors_portable.h"

namespace valora::kernels {

constinit const AttentionBodies<bf16> kPortableAttention{add_values<Portable>, weigh<Portable>};
constinit const AttentionBodies<float> kPortableFloatAttention{add_values<PortableFloat>,
                                                               weigh<PortableFloat>};

}  // namespace valora::kernels
