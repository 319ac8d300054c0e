// A build without FlashInfer's headers.
#include "kernels/cuda/attention/flashinfer.h"

#include <cuda_runtime_api.h>

namespace valora::kernels::cuda {

bool has_flashinfer(int32_t, Dtype) { return false; }
bool has_hopper_flashinfer(int32_t, Dtype) { return false; }

Status flashinfer_attention(const PromptCall&) { return cudaErrorNotSupported; }

}  // namespace valora::kernels::cuda
