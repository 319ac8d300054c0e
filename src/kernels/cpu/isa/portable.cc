#include "kernels/cpu/isa/portable.h"
#include "kernels/cpu/isa/instantiate.h"

namespace valora::kernels {

IsaKernels portable_kernels() {
  return {kernels_of<Portable, PortableFloat>(), kernels_of<PortableFloat>(),
          byte_kernels_of<PortableBytes>(), byte_attention_kernels_of<PortableKv>()};
}

}  // namespace valora::kernels
