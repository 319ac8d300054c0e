#include <cuda_runtime_api.h>

#include "kernels/cuda/attention/flashinfer.h"
#include "kernels/cuda/attention/launchers.h"

namespace valora::kernels::cuda {
namespace {

// FlashInfer counts elements in 32 bits.
bool counts_fit(const AttentionCall& call) {
  constexpr int64_t kMost = INT32_MAX;
  const PromptSizes& sizes = call.sizes.prompts;
  const int64_t row = int64_t{call.heads} * call.cache.dim;
  return call.cache.block_stride <= kMost && call.sizes.tokens * call.q.token_stride <= kMost &&
         call.sizes.tokens * row <= kMost && sizes.part_rows * row <= kMost;
}

}  // namespace

bool flashinfer_takes(const AttentionCall& call) {
  return call.sizes.prompts.items > 0 && !call.sizes.joint && window_of(call) == 0 &&
         !in_bytes(call.cache.format) && counts_fit(call);
}

Status prompt_attention(const AttentionCall& call) {
  const KvCache& cache = call.cache;
  const PromptSizes& sizes = call.sizes.prompts;
  const auto size = static_cast<int64_t>(size_of(cache.dtype));
  const auto* layer = static_cast<const std::byte*>(cache.pool) + cache.layer_offset * size;
  const bool split = sizes.part_rows > 0;
  auto* const parts = static_cast<float*>(call.tables.prompt_parts);
  PromptCall prompts;
  prompts.q = call.q.data, prompts.q_stride = call.q.token_stride;
  prompts.k = layer, prompts.v = layer + kBlockTokens * cache.kv_heads * cache.dim * size;
  prompts.block_stride = cache.block_stride;
  prompts.block_tables = call.tables.block_tables;
  prompts.out = split ? parts : call.out;
  prompts.logarithms = split ? parts + int64_t{sizes.part_rows} * call.heads * cache.dim : nullptr;
  prompts.heads = call.heads, prompts.kv_heads = cache.kv_heads, prompts.dim = cache.dim;
  prompts.dtype = cache.dtype;
  prompts.scale = static_cast<float>(call.rule.scale_of(cache.dim));
  prompts.sizes = sizes;
  prompts.tokens = call.sizes.tokens;
  prompts.table = call.tables.prompts;
  if (sizes.lists == 0) prompts.plan = prompt_arrays(prompts.table, sizes);
  prompts.shared_bytes = call.sizes.shared_bytes;
  prompts.stream = call.stream;
  const Status status = flashinfer_attention(prompts);
  if (status != cudaSuccess || !split) return status;
  return merge_prompt_parts(prompts, call.sizes.tokens, call.out);
}

}  // namespace valora::kernels::cuda
