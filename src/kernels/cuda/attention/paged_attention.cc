#include <cuda_runtime_api.h>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention/launchers.h"

namespace valora::kernels::cuda {
namespace {

bool multiples_of_8(std::initializer_list<int64_t> elements) {
  for (const int64_t n : elements)
    if (n % 8 != 0) return false;
  return true;
}

bool tensor_cores_fit(const AttentionCall& call) {
  const KvCache& cache = call.cache;
  bool aligned =
      multiples_of_8({cache.dim, cache.block_stride, cache.layer_offset, call.q.token_stride});
  for (const void* p :
       {static_cast<const void*>(cache.pool), call.q.data, static_cast<const void*>(call.out)})
    aligned = aligned && reinterpret_cast<uintptr_t>(p) % 16 == 0;
  return aligned && cache.dtype != Dtype::kFloat && call.heads / cache.kv_heads <= kWidePrefillRows;
}

}  // namespace

Status paged_attention(const KvCache& cache, TokenRows q, int32_t heads, void* out,
                       const AttentionRule& rule, const AttentionSizes& sizes,
                       const AttentionTables& tables, void* workspace, Stream stream) {
  const AttentionCall call{cache, q, heads, out, rule, sizes, tables, workspace, stream};
  if (cache.dim > 256 || cache.kv_heads == 0 || heads % cache.kv_heads != 0 || rule.window < 0 ||
      sizes.joint != (tables.ends != nullptr))
    return cudaErrorInvalidValue;
  if (sizes.kernels == AttentionKernels::kPlain)
    return sizes.decode_spans > 0 ? cudaErrorInvalidValue : plain_attention(call);
  if (!tensor_cores_fit(call) || sizes.split_keys % 64 != 0) return cudaErrorInvalidValue;
  const Status status = decode_attention(call);
  if (status != cudaSuccess) return status;
  return flashinfer_takes(call) ? prompt_attention(call) : prefill_attention(call);
}

}  // namespace valora::kernels::cuda
