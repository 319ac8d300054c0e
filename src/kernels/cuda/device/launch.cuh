// Host-side helpers for launching kernels.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <initializer_list>

#include "kernels/cuda/device.h"
#include "kernels/cuda/device/scalar.cuh"
#include "kernels/cuda/types.h"
#ifdef VALORA_CUDA_EMULATED
#include "kernels/cuda/emulation/launch.h"
#endif

namespace valora::kernels::cuda {

// Must be the first statement of every kernel. From sm_90, a launch begins while the previous one
// is finishing (programmatic dependent launch). Before this call, a kernel must not read anything
// that others write, nor write anything that they read.
__device__ inline void wait_for_earlier_launch() {
#ifdef VALORA_CUDA_EMULATED
  emulation::current_block->wait_for_earlier_launch();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

#ifdef VALORA_CUDA_EMULATED
template <typename... Parameters, typename... Arguments>
Status launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
                     Stream stream, const Arguments&... arguments) {
  return emulation::launch<true>(kernel, grid, block, shared_bytes, stream, arguments...);
}
#else
// The most shared memory that a kernel may have without opting in.
inline constexpr size_t kPlainSharedBytes = 48 << 10;

// All kernels are launched here. shared_bytes: dynamic shared memory.
template <typename... Parameters, typename... Arguments>
Status launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
              Stream stream, const Arguments&... arguments) {
  if (shared_bytes > kPlainSharedBytes) {
    const cudaError_t status = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
    if (status != cudaSuccess) return status;
  }
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid, config.blockDim = block, config.dynamicSmemBytes = shared_bytes;
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = &overlap, config.numAttrs = launches_overlap() ? 1 : 0;
  const cudaError_t status = cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
  (void)cudaGetLastError();  // clears the error, which is returned below
  return status;
}
#endif

template <typename T>
constexpr T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}

inline bool aligned16(std::initializer_list<const void*> pointers) {
  for (const void* p : pointers)
    if (reinterpret_cast<uintptr_t>(p) % 16 != 0) return false;
  return true;
}

// True if every number of elements fills whole 16-byte vectors of T.
template <typename T>
bool whole_vectors(std::initializer_list<int64_t> elements) {
  for (const int64_t n : elements)
    if (n % (16 / static_cast<int64_t>(sizeof(T))) != 0) return false;
  return true;
}

// Calls body(T{}) with T = float, bf16 or fp16.
template <typename Body>
decltype(auto) with_type(Dtype dtype, Body&& body) {
  switch (dtype) {
    case Dtype::kBf16: return body(bf16{});
    case Dtype::kFp16: return body(fp16{});
    case Dtype::kFloat: break;
  }
  return body(float{});
}
// The types of the tensor-core kernels. dtype: not kFloat.
template <typename Body>
decltype(auto) with_half_type(Dtype dtype, Body&& body) {
  if (dtype == Dtype::kBf16) return body(bf16{});
  return body(fp16{});
}

}  // namespace valora::kernels::cuda
