// Takes the place of FlashInfer's kernels, which the emulation cannot run: reads the same plan and
// writes the same results, in fp32 and without tensor cores.
#include "kernels/cuda/attention/flashinfer.h"
#include "kernels/cuda/attention/hopper_plan.h"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/scalar.cuh"

namespace valora::kernels::cuda {
namespace {

constexpr int kMostDim = 256;

// One row of an item: a query and a head.
struct ItemRow {
  int64_t token;   // of the step
  int64_t result;  // row of `out`
  int head;
  int first_block;         // index in the block tables
  int first_key, end_key;  // keys that it attends to
};

// The length of the sequence of an entry.
__device__ inline int keys_of(const PromptCall& call, int entry) {
  const int blocks = call.plan.blocks[entry + 1] - call.plan.blocks[entry];
  return (blocks - 1) * static_cast<int>(kBlockTokens) + call.plan.last_tokens[entry];
}

__device__ inline ItemRow row_of(const PromptCall& call, int item, int kv_head, int row) {
  const int entry = call.plan.requests[item], group = call.heads / call.kv_heads;
  const int query = row / group, part = call.plan.key_tiles[item];
  const int keys = keys_of(call, entry), part_keys = *call.plan.part_keys;
  const int queries = call.plan.queries[entry + 1] - call.plan.queries[entry];
  const int visible = keys - queries + query + 1;
  ItemRow at{call.plan.queries[entry] + query, call.plan.outputs[entry] + query,
             kv_head * group + row % group, call.plan.blocks[entry], 0, visible};
  if (call.sizes.part_rows == 0) return at;
  at.result = call.plan.outputs[entry] + query * ceil_div(keys, part_keys) + part;
  at.first_key = part * part_keys;
  at.end_key = min(visible, (part + 1) * part_keys);
  return at;
}

template <typename T>
__device__ float score(const PromptCall& call, const ItemRow& row, const T* key) {
  const T* q = static_cast<const T*>(call.q) + row.token * call.q_stride + row.head * call.dim;
  float sum = 0;
  for (int i = 0; i < call.dim; ++i) sum += to_float(q[i]) * to_float(key[i]);
  return sum * call.scale * 1.44269504f;
}

template <typename T, typename Out>
__device__ void attend(const PromptCall& call, int kv_head, const ItemRow& row) {
  float largest = -INFINITY, weights = 0, values[kMostDim] = {};
  for (int key = row.first_key; key < row.end_key; ++key) {
    const int index = row.first_block + key / static_cast<int>(kBlockTokens);
    const int64_t at =
        call.block_tables[index] * call.block_stride +
        (key % kBlockTokens * call.kv_heads + kv_head) * static_cast<int64_t>(call.dim);
    const float s = score(call, row, static_cast<const T*>(call.k) + at);
    const float shrink = s > largest ? exp2f(largest - s) : 1.0f;
    largest = fmaxf(largest, s);
    const float weight = exp2f(s - largest);
    weights = weights * shrink + weight;
    const T* v = static_cast<const T*>(call.v) + at;
    for (int i = 0; i < call.dim; ++i)
      values[i] = values[i] * shrink + weight * to_float(v[i]);
  }
  Out* out = static_cast<Out*>(call.out) + (row.result * call.heads + row.head) * call.dim;
  for (int i = 0; i < call.dim; ++i)
    out[i] = from_float<Out>(weights > 0 ? values[i] / weights : 0.0f);
  if (call.logarithms)
    call.logarithms[row.result * call.heads + row.head] =
        weights > 0 ? largest + log2f(weights) : -INFINITY;
}

template <typename T, typename Out>
__global__ void prompt_kernel(PromptCall call, int tile_rows) {
  wait_for_earlier_launch();
  const int item = blockIdx.x, kv_head = blockIdx.y;
  if (!reinterpret_cast<const bool*>(call.plan.used)[item]) return;
  const int entry = call.plan.requests[item], group = call.heads / call.kv_heads;
  const int rows = (call.plan.queries[entry + 1] - call.plan.queries[entry]) * group;
  const int row = call.plan.query_tiles[item] * tile_rows + static_cast<int>(threadIdx.x);
  if (row < rows) attend<T, Out>(call, kv_head, row_of(call, item, kv_head, row));
}

template <typename T>
__global__ void hopper_kernel(PromptCall call, int tile_queries) {
  wait_for_earlier_launch();
  const auto plan = hopper_arrays(call.table, call.sizes);
  for (int item = plan.lists[blockIdx.x]; item < plan.lists[blockIdx.x + 1]; ++item) {
    const int query = plan.tiles[item] * tile_queries + static_cast<int>(threadIdx.x);
    if (query >= plan.queries[item]) continue;
    const int64_t token = plan.begins[item] + query;
    const int head = plan.heads[item];
    attend<T, T>(call, head / (call.heads / call.kv_heads),
                 {token, token, head, plan.blocks[item], 0,
                  plan.keys[item] - plan.queries[item] + query + 1});
  }
}

}  // namespace

bool has_flashinfer(int32_t dim, Dtype dtype) {
  return (dim == 64 || dim == 128 || dim == 256) && dtype != Dtype::kFloat;
}

bool has_hopper_flashinfer(int32_t dim, Dtype dtype) { return has_flashinfer(dim, dtype); }

Status flashinfer_attention(const PromptCall& call) {
  if (call.sizes.lists > 0)
    return with_half_type(call.dtype, [&](auto type) {
      const int queries = hopper_queries(call.dim);
      return launch(hopper_kernel<decltype(type)>, static_cast<unsigned>(call.sizes.lists), queries,
                    0, call.stream, call, queries);
    });
  const bool split = call.sizes.part_rows > 0;
  const int rows = split ? kSplitPromptRows : whole_prompt_rows(call.dim);
  const dim3 grid(static_cast<unsigned>(call.sizes.items), static_cast<unsigned>(call.kv_heads));
  return with_half_type(call.dtype, [&](auto type) {
    using T = decltype(type);
    return split ? launch(prompt_kernel<T, float>, grid, rows, 0, call.stream, call, rows)
                 : launch(prompt_kernel<T, T>, grid, rows, 0, call.stream, call, rows);
  });
}

}  // namespace valora::kernels::cuda
