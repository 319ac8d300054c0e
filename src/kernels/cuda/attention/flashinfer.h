// FlashInfer's prefill kernels behind plain data (flashinfer/, docs/gpu.md). The program may have
// been built without them.
#pragma once

#include "kernels/cuda/attention/prompt_plan.h"

namespace valora::kernels::cuda {

struct PromptCall {
  const void* q = nullptr;  // [tokens, heads, dim], rows q_stride elements apart
  int64_t q_stride = 0;
  const void *k = nullptr, *v = nullptr;  // of the first block's first token; as KvCache has them
  int64_t block_stride = 0;               // elements
  const int32_t* block_tables = nullptr;
  // Results in the dtype, [tokens, heads, dim]; or, where keys are split, means of values in fp32,
  // [part_rows, heads, dim], and the base-2 logarithms of their sums of weights, [part_rows,
  // heads].
  void* out = nullptr;
  float* logarithms = nullptr;
  int32_t heads = 0, kv_heads = 0, dim = 0;
  Dtype dtype = Dtype::kBf16;
  float scale = 0;     // on scores
  int64_t tokens = 0;  // of the step
  PromptSizes sizes;
  const int32_t* table = nullptr;      // the plan, of prompt_plan.h, or of hopper_plan.h
  PromptArrays<const int32_t> plan{};  // the former
  int32_t shared_bytes = 0;            // available to a thread block
  Stream stream = nullptr;
};

// True if the kernels of these heads are compiled; FA3's only for compute capability 9.0.
bool has_flashinfer(int32_t dim, Dtype dtype);
bool has_hopper_flashinfer(int32_t dim, Dtype dtype);
// cudaErrorNotSupported if they are not.
Status flashinfer_attention(const PromptCall& call);

}  // namespace valora::kernels::cuda
