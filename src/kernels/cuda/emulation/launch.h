// Launches emulated kernels, within the limits that the driver checks.
#pragma once

#include <tuple>
#include <utility>

#include "kernels/cuda/emulation/block.h"
#include "kernels/cuda/emulation/toolkit/cuda_runtime_api.h"

namespace valora::kernels::cuda::emulation {

// Runs all blocks, or records the launch if the stream is being captured.
cudaError_t run(Launch launch, cudaStream_t stream);
void run_blocks(const Launch& launch);

// kWaits: the kernel must wait for the previous launch.
template <bool kWaits = false, typename... Parameters, typename... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
                   void* stream, const Arguments&... arguments) {
  std::tuple<Parameters...> kept(arguments...);
  return run({reinterpret_cast<const void*>(kernel), grid, block, shared_bytes,
              [kernel, kept] { std::apply(kernel, kept); }, kWaits},
             static_cast<cudaStream_t>(stream));
}

}  // namespace valora::kernels::cuda::emulation
