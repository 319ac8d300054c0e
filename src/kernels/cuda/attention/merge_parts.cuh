// Merges the parts of decode spans whose keys were split (Flash-Decoding), either in the last
// thread block to finish or in a separate launch.
#pragma once

#include "kernels/cuda/attention/flash.cuh"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/mma.cuh"

namespace valora::kernels::cuda {

inline constexpr int kMergeThreads = 128;

// Parts of rows: sums [parts, dim], then (maximum, weight) [parts], where part = ((span · kv_heads
// + kv_head) · rows + row) · splits + split. counters: [spans, kv_heads]; null: a separate launch
// merges the parts.
struct Parts {
  float* sums;
  float2* states;
  unsigned* counters;
  int rows, splits, split_keys;
};

// True in the last of `blocks` thread blocks to call it with this counter; that block sees
// everything the others wrote before their calls. flag: shared memory.
__device__ inline bool is_last(unsigned* counter, unsigned blocks, float* flag) {
  __syncthreads();
  // The last call resets the counter for the next launch.
  if (threadIdx.x == 0) *flag = count_in_turns(counter, blocks - 1) == blocks - 1 ? 1.0f : 0.0f;
  __syncthreads();
  return *flag != 0.0f;
}

// Merges the parts of all rows of a span and KV head; bit-identical to merge_parts_kernel. states:
// shared memory, [rows, count].
template <typename T>
__device__ void merge_parts(const FlashArguments<T>& a, const Parts& parts, const DeviceSpan& span,
                            int kv_head, int count, float2* states) {
  constexpr int kLoads = 8;  // in flight
  const int group = a.heads / a.kv_heads, rows = span.queries * group, chunks = a.dim / 4;
  const int64_t first =
      (static_cast<int64_t>(blockIdx.z) * a.kv_heads + kv_head) * parts.rows * parts.splits;
  for (int i = threadIdx.x; i < rows * count; i += blockDim.x) {
    const int row = i / count;
    states[i] = load_from_l2(parts.states + first + row * parts.splits + i - row * count);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < rows * chunks; i += blockDim.x) {
    const int row = i / chunks, column = (i - row * chunks) * 4;
    const float2* of_row = states + row * count;
    const float* sums = parts.sums + (first + row * parts.splits) * a.dim + column;
    float maximum = -INFINITY, weight = 0, values[4] = {};
    for (int k = 0; k < count; ++k) maximum = fmaxf(maximum, of_row[k].x);
    for (int k = 0; k < count; k += kLoads) {
      float4 loaded[kLoads];
#pragma unroll
      for (int j = 0; j < kLoads; ++j)
        if (k + j < count)
          loaded[j] = load_from_l2(reinterpret_cast<const float4*>(sums + (k + j) * a.dim));
#pragma unroll
      for (int j = 0; j < kLoads; ++j) {
        if (k + j >= count) break;
        const float factor = exp2f(of_row[k + j].x - maximum);
        weight += factor * of_row[k + j].y;
        values[0] += factor * loaded[j].x, values[1] += factor * loaded[j].y;
        values[2] += factor * loaded[j].z, values[3] += factor * loaded[j].w;
      }
    }
    const int64_t token = span.begin + row / group;
    T* out = a.out + (token * a.heads + kv_head * group + row % group) * a.dim + column;
    *reinterpret_cast<uint2*>(out) = {pack<T>(values[0] / weight, values[1] / weight),
                                      pack<T>(values[2] / weight, values[3] / weight)};
  }
}

// Merges the parts in a separate launch. One thread block per span (y) and row of any KV head (x).
template <typename T>
__global__ void __launch_bounds__(kMergeThreads)
    merge_parts_kernel(FlashArguments<T> a, Parts parts) {
  wait_for_earlier_launch();
  const DeviceSpan span = a.spans[blockIdx.y];
  const int group = a.heads / a.kv_heads;
  const int kv_head = blockIdx.x / parts.rows, row = blockIdx.x % parts.rows;
  if (row >= span.queries * group) return;
  const int keys = span.context + span.queries - first_key_of(span.context, a.window);
  const int count = (keys + parts.split_keys - 1) / parts.split_keys;
  const int64_t first = (static_cast<int64_t>(blockIdx.y) * gridDim.x + blockIdx.x) * parts.splits;
  float maximum = -INFINITY, weight = 0;
  for (int i = 0; i < count; ++i) maximum = fmaxf(maximum, parts.states[first + i].x);
  for (int i = 0; i < count; ++i) {
    const float2 state = parts.states[first + i];
    weight += exp2f(state.x - maximum) * state.y;
  }
  const int64_t token = span.begin + row / group;
  T* out = a.out + (token * a.heads + kv_head * group + row % group) * a.dim;
  for (int column = threadIdx.x; column < a.dim; column += blockDim.x) {
    float value = 0;
    for (int i = 0; i < count; ++i)
      value +=
          exp2f(parts.states[first + i].x - maximum) * parts.sums[(first + i) * a.dim + column];
    out[column] = from_float<T>(value / weight);
  }
}

}  // namespace valora::kernels::cuda
