#pragma once

#include <string>

namespace valora::kernels::cuda::emulation {

// `decode_kernel<__nv_bfloat16, Ring<128> >`, without namespaces and parameters; "a kernel" if the
// program has no symbols. Slow: it reads the program's file.
std::string kernel_name(const void* kernel);

}  // namespace valora::kernels::cuda::emulation
