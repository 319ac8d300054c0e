// One set of FlashInfer's FA3 kernels: a dtype and a head size (VALORA_FLASHINFER_HOPPER_UNIT).
// Compiled for sm_90a alone.
#pragma once

// Of what this header includes, FlashInfer's kernels need CUTLASS alone, and its test helpers need
// headers of cuRAND.
#define FLASHINFER_CUTLASS_UTILS_CUH_
#include <cuda_fp8.h>
#include <cutlass/cutlass.h>

#include <cute/tensor.hpp>
#include <flashinfer/attention/hopper/default_params.cuh>
#include <flashinfer/attention/hopper/prefill_sm90.cuh>
#include <flashinfer/attention/hopper/variants.cuh>

#include "kernels/cuda/attention/flashinfer/units.h"

namespace valora::kernels::cuda {
namespace hopper_unit {

using bf16 = cutlass::bfloat16_t;
using fp16 = cutlass::half_t;

template <typename T>
using Params = ::flashinfer::BatchPrefillPagedParams<T, T, T, int32_t>;

// FlashInfer's structures have no const; its kernels write to the results alone.
template <typename T>
T* writable(const void* p) {
  return static_cast<T*>(const_cast<void*>(p));
}

template <typename T>
void set_plan(const PromptCall& call, Params<T>& params) {
  const HopperArrays<const int32_t> plan = hopper_arrays(call.table, call.sizes);
  params.qo_tile_indices = writable<int32_t>(plan.tiles);
  params.head_indices = writable<int32_t>(plan.heads);
  params.batch_indices = writable<int32_t>(plan.prompts);
  params.qo_indptr = writable<int32_t>(plan.begins);
  params.kv_indptr = writable<int32_t>(plan.blocks);
  params.qo_lens = writable<int32_t>(plan.queries);
  params.kv_lens = writable<int32_t>(plan.keys);
  params.work_indptr = writable<int32_t>(plan.lists);
  params.kv_indices = writable<int32_t>(call.block_tables);
}

template <typename T>
Params<T> params_of(const PromptCall& call) {
  Params<T> params{};
  set_plan(call, params);
  const int64_t row = int64_t{call.kv_heads} * call.dim;
  params.q_ptr = writable<T>(call.q), params.o_ptr = static_cast<T*>(call.out);
  params.k_ptr = writable<T>(call.k), params.v_ptr = writable<T>(call.v);
  params.additional_params.sm_scale = call.scale;
  params.q_stride_n = call.q_stride, params.o_stride_n = int64_t{call.heads} * call.dim;
  params.k_stride_n = row, params.v_stride_n = row;
  params.q_stride_h = params.k_stride_h = params.v_stride_h = params.o_stride_h = call.dim;
  params.k_page_stride = call.block_stride, params.v_page_stride = call.block_stride;
  params.nnz_qo = call.tokens;
  params.num_qo_heads = call.heads, params.num_kv_heads = call.kv_heads;
  params.group_size = call.heads / call.kv_heads;
  params.page_size = kBlockTokens;
  params.window_left = -1, params.causal = true;
  return params;
}

// Keys per stage, as FlashInfer chooses them for pages.
constexpr int stage_keys(int dim) { return dim <= 128 ? 96 : 32; }

template <typename T, int dim>
Status attend(const PromptCall& call) {
  using Kernel =
      ::flashinfer::AttentionKernelTraits<false, dim, dim, hopper_queries(dim), stage_keys(dim), 2,
                                          T, T, T, int32_t, ::flashinfer::StandardAttention>;
  Params<T> params = params_of<T>(call);
  const cudaError_t status =
      ::flashinfer::BatchPrefillWithPagedKVCacheKernelTraitsDispatched<Kernel, false, true, false>(
          params, static_cast<cudaStream_t>(call.stream));
  (void)cudaGetLastError();  // clears the error, which is returned
  return status;
}

}  // namespace hopper_unit

#define VALORA_FLASHINFER_HOPPER_UNIT(type, dim)               \
  Status hopper_flashinfer_##type##_##dim(const PromptCall& call) { \
    return hopper_unit::attend<hopper_unit::type, dim>(call);  \
  }

}  // namespace valora::kernels::cuda
