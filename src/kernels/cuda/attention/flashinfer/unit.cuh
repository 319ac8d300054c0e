// One set of FlashInfer's paged prefill kernels: a dtype and a head size, with keys whole and
// split. CMake writes a source for each set (VALORA_FLASHINFER_UNIT), so that a build may have few.
#pragma once

#include <flashinfer/attention/default_prefill_params.cuh>
#include <flashinfer/attention/prefill.cuh>
#include <flashinfer/attention/variants.cuh>

#include "kernels/cuda/attention/flashinfer/units.h"

namespace valora::kernels::cuda {
namespace flashinfer_unit {

using bf16 = __nv_bfloat16;
using fp16 = __half;
using Variant = ::flashinfer::DefaultAttention<false, false, false, false>;

template <typename T, typename Out, int rows, int keys, int dim>
using Traits = ::flashinfer::KernelTraits<
    ::flashinfer::MaskMode::kCausal, rows, ::flashinfer::get_num_mma_q(rows), keys / 16, dim / 16,
    dim / 16, ::flashinfer::get_num_warps_q(rows), ::flashinfer::get_num_warps_kv(rows),
    ::flashinfer::PosEncodingMode::kNone, T, T, Out, float, int32_t, Variant>;

template <typename T, typename Out>
using Params = ::flashinfer::BatchPrefillPagedParams<T, T, Out, int32_t>;

// FlashInfer's structures have no const; its kernels write to `o` and `lse` alone.
inline int32_t* table(const int32_t* p) { return const_cast<int32_t*>(p); }

template <typename T, typename Out>
Params<T, Out> params_of(const PromptCall& call) {
  const int64_t strides[3] = {call.block_stride, int64_t{call.kv_heads} * call.dim, call.dim};
  const ::flashinfer::paged_kv_t<T, int32_t> cache(
      call.kv_heads, kBlockTokens, call.dim, 2 * call.sizes.requests,
      ::flashinfer::QKVLayout::kNHD, static_cast<T*>(const_cast<void*>(call.k)),
      static_cast<T*>(const_cast<void*>(call.v)), strides, table(call.block_tables),
      table(call.plan.blocks), table(call.plan.last_tokens));
  Params<T, Out> params(static_cast<T*>(const_cast<void*>(call.q)), cache, nullptr,
                        table(call.plan.queries), nullptr, nullptr, static_cast<Out*>(call.out),
                        call.logarithms, nullptr, call.heads, static_cast<int32_t>(call.q_stride),
                        call.dim, -1, 0.0f, call.scale, 1.0f, 1.0f);
  params.request_indices = table(call.plan.requests);
  params.qo_tile_indices = table(call.plan.query_tiles);
  params.kv_tile_indices = table(call.plan.key_tiles);
  params.o_indptr = table(call.plan.outputs);
  params.kv_chunk_size_ptr = table(call.plan.part_keys);
  params.block_valid_mask = reinterpret_cast<bool*>(table(call.plan.used));
  params.padded_batch_size = call.sizes.items;
  params.partition_kv = call.sizes.part_rows > 0;
  return params;
}

// Two thread blocks of a multiprocessor hide each other's waits, if its memory suffices for both.
// The driver keeps 1 KiB of it for each.
inline bool two_fit(size_t bytes, int32_t shared_bytes) {
  constexpr size_t kReserved = 1 << 10;
  return 2 * (bytes + kReserved) <= static_cast<size_t>(shared_bytes) + kReserved;
}

template <typename T, typename Out, int rows, int keys, int dim>
Status launch_tiles(const PromptCall& call) {
  using Kernel = Traits<T, Out, rows, keys, dim>;
  static_assert(!Kernel::IsInvalid());
  constexpr size_t kBytes = sizeof(typename Kernel::SharedStoragePaged);
  auto* const kernel =
      ::flashinfer::BatchPrefillWithPagedKVCacheKernel<true, Kernel, Params<T, Out>>;
  cudaError_t status =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (status == cudaSuccess) {
    // Does not overlap the launch before it: thread blocks of surplus items end without waiting for
    // it.
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(call.sizes.items, 1, call.kv_heads);
    config.blockDim = dim3(32, Kernel::NUM_WARPS_Q, Kernel::NUM_WARPS_KV);
    config.dynamicSmemBytes = kBytes;
    config.stream = static_cast<cudaStream_t>(call.stream);
    status = cudaLaunchKernelEx(&config, kernel, params_of<T, Out>(call));
  }
  (void)cudaGetLastError();  // clears the error, which is returned below
  return status;
}

template <typename T, int dim>
Status attend(const PromptCall& call) {
  if (call.sizes.part_rows > 0)
    return launch_tiles<T, float, kSplitPromptRows, dim <= 128 ? 64 : 32, dim>(call);
  constexpr int kRows = whole_prompt_rows(dim);
  if constexpr (dim == 128) {  // GPUs without an A100's or H100's memory take fewer keys at a time
    if (!two_fit(sizeof(typename Traits<T, T, kRows, 64, dim>::SharedStoragePaged),
                 call.shared_bytes))
      return launch_tiles<T, T, kRows, 32, dim>(call);
  }
  return launch_tiles<T, T, kRows, dim <= 128 ? 64 : 32, dim>(call);
}

}  // namespace flashinfer_unit

#define VALORA_FLASHINFER_UNIT(type, dim)                      \
  Status flashinfer_##type##_##dim(const PromptCall& call) {   \
    return flashinfer_unit::attend<flashinfer_unit::type, dim>(call); \
  }

}  // namespace valora::kernels::cuda
