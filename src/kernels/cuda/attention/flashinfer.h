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
  float scale = 0;  // on scores
  PromptSizes sizes;
  PromptArrays<const int32_t> plan{};
  int32_t shared_bytes = 0;  // available to a thread block
  Stream stream = nullptr;
};

// True if the kernels of these heads are compiled.
bool has_flashinfer(int32_t dim, Dtype dtype);
// cudaErrorNotSupported unless has_flashinfer().
Status flashinfer_attention(const PromptCall& call);

}  // namespace valora::kernels::cuda
