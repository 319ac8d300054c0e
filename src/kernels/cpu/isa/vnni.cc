#ifdef __x86_64__

#include "kernels/cpu/isa/bytes_vnni.h"
#include "kernels/cpu/product/byte_kernels.h"

namespace valora::kernels {

constinit const ByteKernels kVnniByteKernels = byte_kernels_of<VnniBytes>();

}  // namespace valora::kernels

#endif
