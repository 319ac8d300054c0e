#include "kernels/cuda/device.h"

#include <cuda_runtime_api.h>

namespace valora::kernels::cuda {

int32_t multiprocessors() {
  int device = 0, count = 0;
  const bool known =
      cudaGetDevice(&device) == cudaSuccess &&
      cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) == cudaSuccess;
  return known && count > 0 ? count : 132;
}

const char* message_of(Status status) {
  return cudaGetErrorString(static_cast<cudaError_t>(status));
}

}  // namespace valora::kernels::cuda
