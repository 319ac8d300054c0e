#include "kernels/cpu/isa/instantiate.h"
#include "kernels/cpu/isa/vectors_portable.h"

namespace valora::kernels {

constinit const KernelSet<bf16> kPortableKernels = kernels_of<Portable, PortableFloat>();
constinit const KernelSet<float> kPortableFloatKernels = kernels_of<PortableFloat>();

}  // namespace valora::kernels
