#include <numeric>
#include <string>
#include <vector>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/bench/model.h"
#include "kernels/cuda/bench/timing.h"
#include "kernels/cuda/testing/values.h"

namespace valora::kernels::cuda {
namespace {

constexpr Dtype kDtype = Dtype::kBf16;

struct Batch {
  int spans, context, queries;
};

void bench_batch(const ModelSizes& model, const Batch& batch, const Figures& figures) {
  const int64_t length = batch.context + batch.queries;
  const int64_t blocks_per_span = (length + kBlockTokens - 1) / kBlockTokens;
  const int64_t row = int64_t{model.kv_heads} * model.dim;
  const size_t cache_bytes = 2 * batch.spans * length * row * 2;
  const int layers = rotations(cache_bytes, 512);
  Random random(1);
  std::vector<int32_t> blocks(batch.spans * blocks_per_span);
  std::iota(blocks.begin(), blocks.end(), 0);
  random.shuffle(blocks);
  const int64_t tokens = int64_t{batch.spans} * batch.queries;
  std::vector<QuerySpan> spans;
  for (int i = 0; i < batch.spans; ++i)
    spans.push_back({int64_t{i} * batch.queries, batch.queries, batch.context,
                     blocks.data() + i * blocks_per_span});
  const AttentionShape shape{model.heads, model.kv_heads, model.dim, kDtype, true, 132};
  const AttentionPlan plan = plan_attention(shape, spans.data(), spans.size(), tokens);
  const DeviceTable<DeviceSpan> span_table(plan.spans);
  const DeviceTable<int32_t> block_table(plan.block_tables);
  const DeviceTable<int64_t> slots(plan.slots);
  const DeviceTable<AttentionTile> tiles(plan.tiles);
  const std::vector<uint32_t> zeros(attention_counters(plan.sizes, model.kv_heads), 0);
  const DeviceMemory counters(zeros.size() * sizeof(uint32_t));
  counters.upload(zeros.data(), counters.size());
  AttentionTables tables{span_table.data(), block_table.data(), slots.data(), tiles.data(),
                         reinterpret_cast<uint32_t*>(counters.data())};

  const int64_t stride = layers * 2 * kBlockTokens * row;
  const DeviceMemory pool(blocks.size() * stride * 2);
  require(cudaMemset(pool.data(), 0x3c, pool.size()), "cudaMemset");  // values of about 0.01
  const DeviceValues q(random.values(tokens * model.heads * model.dim, kDtype), kDtype),
      k(random.values(tokens * row, kDtype), kDtype), out(tokens * model.heads * model.dim, kDtype);
  const DeviceMemory workspace(attention_workspace_bytes(plan.sizes, model.kv_heads, model.dim));
  const auto cache = [&](int layer) {
    return KvCache{pool.data(),    stride,    layer * 2 * kBlockTokens * row,
                   model.kv_heads, model.dim, kDtype};
  };
  const auto attend = [&] {
    return seconds_per_launch(
        [&](int i, Stream stream) {
          return paged_attention(cache(i), {q.data(), int64_t{model.heads} * model.dim},
                                 model.heads, out.data(), {}, plan.sizes, tables, workspace.data(),
                                 stream);
        },
        layers);
  };
  const double seconds = attend();
  std::string name = std::string("attention ") + model.name;
  if (batch.queries == 1) {
    name += " decode batch " + std::to_string(batch.spans) + " context " +
            std::to_string(batch.context) + " splits " + std::to_string(plan.sizes.splits());
    print_result(name, seconds, static_cast<double>(cache_bytes), 0, figures);
    tables.counters = nullptr;
    if (!zeros.empty())
      print_result(name + " merged apart", attend(), static_cast<double>(cache_bytes), 0, figures);
  } else {
    name += " prefill " + std::to_string(batch.queries) + " after " + std::to_string(batch.context);
    const double pairs = batch.queries * (batch.context + (batch.queries + 1) / 2.0) * batch.spans;
    print_result(name, seconds, 0, 4 * pairs * model.heads * model.dim, figures);
  }
  if (batch.queries == 1 && batch.context > 1024) return;
  const std::string of_tokens = std::string(model.name) + " tokens " + std::to_string(tokens);
  const double store = seconds_per_launch(
      [&](int i, Stream stream) {
        return store_kv(cache(i), {k.data(), row}, {k.data(), row}, slots.data(), tokens, stream);
      },
      layers);
  print_result("store_kv " + of_tokens, store, 4.0 * tokens * row * 2, 0, figures);
  const DeviceValues turns(random.values(tokens * model.dim / 2, Dtype::kFloat), Dtype::kFloat);
  const Angles angles{static_cast<const float*>(turns.data()),
                      static_cast<const float*>(turns.data())};
  const double rotated = seconds_per_launch(
      [&](int i, Stream stream) {
        return rotate_and_store(cache(i), {q.data(), int64_t{model.heads} * model.dim, model.heads},
                                {k.data(), row}, {k.data(), row}, angles, angles, model.dim,
                                slots.data(), tokens, stream);
      },
      layers);
  print_result("rotate_and_store " + of_tokens, rotated,
               4.0 * tokens * (row * 2 + int64_t{model.heads} * model.dim), 0, figures);
}

}  // namespace

void bench_attention(const Figures& figures) {
  for (const ModelSizes& model : kModels) {
    for (const int context : {1024, 4096})
      for (const int spans : {1, 8, 32, 64}) bench_batch(model, {spans, context, 1}, figures);
    for (const Batch& batch : {Batch{1, 0, 512}, {1, 0, 2048}, {1, 4096, 512}, {4, 0, 2048}})
      bench_batch(model, batch, figures);
  }
}

}  // namespace valora::kernels::cuda
