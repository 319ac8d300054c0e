#include "kernels/cuda/attention.h"
#include "kernels/cuda/device.h"

#include "ops/device/cuda_types.h"
#include "ops/device/dispatch.h"
#include "ops/device/gpu.h"
#include "ops/launch/compared_launches.h"

namespace valora::ops {

bool has_cuda_kernels() { return true; }

void prepare_gpu() {
  if (separate_launches().overlap) kernels::cuda::disable_launch_overlap();
  TORCH_CHECK(!prompts_by_flashinfer() || kernels::cuda::built_with_flashinfer(),
              "VALORA_GPU_PREFILL=flashinfer: this build is without FlashInfer's kernels "
              "(docs/gpu.md)");
}

Gpu this_gpu() {
  return {kernels::cuda::gpu_name(), kernels::cuda::capability(), kernels::cuda::shared_bytes(),
          kernels::cuda::cache_bytes()};
}

kernels::CudaArch gpu_arch() {
  static const kernels::CudaArch arch = kernels::arch_of(kernels::cuda::capability());
  return arch;
}

bool is_hopper() {
  static const bool hopper = kernels::cuda::capability() == 90;
  return hopper;
}

void check_launch(kernels::cuda::Status status, const char* what) {
  TORCH_CHECK(status == 0, what, " on a GPU: ", kernels::cuda::message_of(status));
}

int32_t multiprocessors() {
  static const int32_t count = kernels::cuda::multiprocessors();
  return count;
}

int32_t shared_bytes() {
  static const int32_t bytes = kernels::cuda::shared_bytes();
  return bytes;
}

}  // namespace valora::ops
