// Converts the arguments of paged_attention() to those of the tensor-core kernels.
#pragma once

#include <type_traits>

#include "kernels/cuda/attention/flash.cuh"
#include "kernels/cuda/attention/launchers.h"

namespace valora::kernels::cuda {

template <typename T>
FlashArguments<T> flash_arguments(const AttentionCall& call) {
  constexpr double kLog2e = 1.4426950408889634;
  const KvCache& cache = call.cache;
  return {static_cast<const T*>(cache.pool) + cache.layer_offset,
          static_cast<const uint8_t*>(cache.pool) + cache.layer_offset,
          cache.block_stride,
          static_cast<const T*>(call.q.data),
          call.q.token_stride,
          static_cast<T*>(call.out),
          call.tables.spans,
          call.tables.block_tables,
          call.tables.ends,
          call.heads,
          cache.kv_heads,
          cache.dim,
          window_of(call),
          static_cast<float>(kLog2e * call.rule.scale_of(cache.dim)),
          cache.format == KvFormat::kInt8};
}

// Calls body with whether keys are bounded by more than the queries' positions: by a window, or by
// joint ranges.
template <typename Body>
decltype(auto) with_bounds(const AttentionCall& call, Body&& body) {
  if (window_of(call) > 0 || call.sizes.joint) return body(std::true_type{});
  return body(std::false_type{});
}

// Calls body with the smallest compiled dim, at most 256, that is at least `dim`. Columns beyond
// `dim` are zero in shared memory and not read from global memory.
template <typename Body>
decltype(auto) with_dim(int dim, Body&& body) {
  if (dim <= 64) return body(std::integral_constant<int, 64>{});
  if (dim <= 96) return body(std::integral_constant<int, 96>{});
  if (dim <= 128) return body(std::integral_constant<int, 128>{});
  return body(std::integral_constant<int, 256>{});
}

}  // namespace valora::kernels::cuda
