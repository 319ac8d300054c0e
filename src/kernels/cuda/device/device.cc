#include "kernels/cuda/device.h"

#include <cuda_runtime_api.h>

namespace valora::kernels::cuda {
namespace {

int32_t attribute(cudaDeviceAttr name, int32_t without_gpu) {
  int device = 0, value = 0;
  const bool known = cudaGetDevice(&device) == cudaSuccess &&
                     cudaDeviceGetAttribute(&value, name, device) == cudaSuccess;
  return known && value > 0 ? value : without_gpu;
}

}  // namespace

int32_t multiprocessors() { return attribute(cudaDevAttrMultiProcessorCount, 132); }

int32_t shared_bytes() { return attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, 227 << 10); }

int32_t cache_bytes() { return attribute(cudaDevAttrL2CacheSize, 0); }

std::string gpu_name() {
  int device = 0;
  cudaDeviceProp properties{};
  const bool known = cudaGetDevice(&device) == cudaSuccess &&
                     cudaGetDeviceProperties(&properties, device) == cudaSuccess;
  return known ? properties.name : "";
}

int32_t capability() {
  return 10 * attribute(cudaDevAttrComputeCapabilityMajor, 0) +
         attribute(cudaDevAttrComputeCapabilityMinor, 0);
}

namespace {

bool& launches_apart() {
  static bool apart = capability() < 90;
  return apart;
}

}  // namespace

bool launches_overlap() { return !launches_apart(); }
void disable_launch_overlap() { launches_apart() = true; }

const char* message_of(Status status) {
  return cudaGetErrorString(static_cast<cudaError_t>(status));
}

}  // namespace valora::kernels::cuda
