// From the arguments of paged_attention to those of the tensor-core kernels.
#pragma once

#include <cmath>
#include <type_traits>

#include "kernels/cuda/attention/flash.cuh"
#include "kernels/cuda/attention/launchers.h"

namespace valora::kernels::cuda {

template <typename T>
FlashArguments<T> flash_arguments(const AttentionCall& call) {
  constexpr double kLog2e = 1.4426950408889634;
  const KvCache& cache = call.cache;
  return {static_cast<const T*>(cache.pool) + cache.layer_offset,
          cache.block_stride,
          static_cast<const T*>(call.q.data),
          call.q.token_stride,
          static_cast<T*>(call.out),
          call.tables.spans,
          call.tables.block_tables,
          call.heads,
          cache.kv_heads,
          cache.dim,
          static_cast<float>(kLog2e / std::sqrt(static_cast<double>(cache.dim)))};
}

// Calls body with the smallest compiled dim that holds `dim`, at most 256. Columns beyond dim are
// zeros in shared memory, and are not read.
template <typename Body>
decltype(auto) with_dim(int dim, Body&& body) {
  if (dim <= 64) return body(std::integral_constant<int, 64>{});
  if (dim <= 96) return body(std::integral_constant<int, 96>{});
  if (dim <= 128) return body(std::integral_constant<int, 128>{});
  return body(std::integral_constant<int, 256>{});
}

}  // namespace valora::kernels::cuda
