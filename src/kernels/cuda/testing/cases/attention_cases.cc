#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/testing/cases/attention_step.h"
#include "kernels/cuda/testing/cases/cases.h"
#include "kernels/cuda/testing/report.h"

namespace valora::kernels::cuda {
namespace {

// The kernels round the weights to the dtype before they multiply the values.
double inner_error(Dtype dtype) {
  return dtype == Dtype::kFloat ? 1e-5 : unit_roundoff(dtype) + 2e-5;
}

struct How {
  int split_keys = 0;    // 0: as planned
  bool graph = false;    // the launches are captured, and replayed
  bool bounded = false;  // the plan has the tables of a captured decode step
};

double work_of(const StepSizes& sizes) {
  double work = 0;
  for (const auto& [context, queries] : sizes.lengths)
    work += 2.0 * queries * (context + queries) * sizes.heads * sizes.dim;
  return work;
}

// Captures launch(stream), and replays it twice.
template <typename Launch>
int replay(const Launch& launch, const std::string& name, const DeviceValues& out) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  require(cudaStreamCreate(&stream), "cudaStreamCreate");
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin capture");
  const int status = launch(stream);
  require(cudaStreamEndCapture(stream, &graph), "end capture");
  require(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  for (int i = 0; i < 2; ++i) {
    require(cudaStreamSynchronize(stream), name.c_str());
    out.memory().poison();
    require(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
  }
  require(cudaStreamSynchronize(stream), name.c_str());
  require(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
  require(cudaGraphDestroy(graph), "cudaGraphDestroy");
  require(cudaStreamDestroy(stream), "cudaStreamDestroy");
  return status;
}

// NOLINTNEXTLINE(readability-function-size): a case with its expectations
void attention_case(Group& group, const StepSizes& sizes, const How& how = {}) {
  if (!group.takes(work_of(sizes))) return;
  const AttentionStep step = make_step(sizes);
  std::string name = step.name;
  AttentionPlan plan =
      plan_attention(step.shape(), step.spans.data(), step.spans.size(), step.tokens);
  if (how.bounded && decode_fits(step.shape())) {
    constexpr int kSpans = 8, kLongest = 600;
    plan = plan_decode(decode_sizes(step.shape(), kSpans, kLongest), step.spans.data(),
                       step.spans.size());
    // The tables of tokens have as many entries as spans can have; the step has some that no span
    // has.
    plan.slots.resize(std::max<size_t>(plan.slots.size(), step.tokens), -1);
    name += " bounded";
    size_t used = 0;
    for (const QuerySpan& span : step.spans)
      used += (span.context + span.queries + kBlockTokens - 1) / kBlockTokens;
    group.check(name + " tables",
                plan.block_tables.size() == used && used <= decode_blocks(plan.sizes),
                "the block tables have other blocks than those of the step");
  }
  if (how.split_keys > 0) {
    plan.sizes.split_keys = how.split_keys;
    name += " split " + std::to_string(how.split_keys);
  }
  const Dtype dtype = sizes.dtype;
  DeviceValues pool(step.pool_before, dtype, step.shift()), q(step.q, dtype, step.shift()),
      k(step.k, dtype, step.shift()), v(step.v, dtype, step.shift()),
      out(static_cast<size_t>(step.tokens) * sizes.heads * sizes.dim, dtype, step.shift());
  // Room beyond the tables in use, as in a graph that is replayed with fewer spans.
  if (how.graph) {
    name += " graph";
    plan.spans.insert(plan.spans.begin() + plan.sizes.decode_spans, DeviceSpan{});
    for (AttentionTile& tile : plan.tiles) ++tile.span;
    plan.sizes.decode_spans += plan.sizes.kernels == AttentionKernels::kTensorCores ? 1 : 0;
    plan.tiles.push_back({});
    ++plan.sizes.tiles;
    plan.sizes.longest += 100;
    if (plan.sizes.decode_rows == 0) plan.sizes.decode_rows = 1;
  }
  const DeviceTable<DeviceSpan> spans(plan.spans);
  const DeviceTable<int32_t> blocks(plan.block_tables);
  const DeviceTable<int64_t> slots(plan.slots);
  const DeviceTable<AttentionTile> tiles(plan.tiles);
  DeviceMemory workspace(attention_workspace_bytes(plan.sizes, sizes.kv_heads, sizes.dim));
  const std::vector<uint32_t> zeros(attention_counters(plan.sizes, sizes.kv_heads), 0);
  const DeviceMemory counters(zeros.size() * sizeof(uint32_t));
  counters.upload(zeros.data(), counters.size());
  const KvCache cache{pool.data(),    step.block_stride, step.layer_offset,
                      sizes.kv_heads, sizes.dim,         dtype};
  AttentionTables tables{spans.data(), blocks.data(), slots.data(), tiles.data(),
                         reinterpret_cast<uint32_t*>(counters.data())};
  const auto launch = [&](Stream stream) {
    const int status = store_kv(cache, {k.data(), step.kv_stride}, {v.data(), step.kv_stride},
                                slots.data(), step.tokens, stream);
    if (status != 0) return status;
    return paged_attention(cache, {q.data(), step.q_stride}, sizes.heads, out.data(), plan.sizes,
                           tables, workspace.data(), stream);
  };
  int status = 0;
  if (how.graph)
    status = replay(launch, name, out);
  else
    status = launch(nullptr);
  if (!group.launched(name, status)) return;
  group.check_same(name + " store", step.pool_after, pool);
  group.check(name, expected_attention(step), out, dtype, inner_error(dtype));
  group.check(name + " workspace", workspace.guards_intact(), "wrote outside of the workspace");
  if (zeros.empty()) return;
  const auto counted = [&] {
    std::vector<uint32_t> values(zeros.size());
    std::memcpy(values.data(), counters.download().data(), counters.size());
    return counters.guards_intact() && values == zeros;
  };
  // Again, and with the parts merged by a launch of their own.
  const std::vector<float> first = out.get();
  for (const bool apart : {false, true}) {
    group.check(name + " counters", counted(), "the counters are not zeros again");
    out.memory().poison();
    workspace.poison();
    if (apart) tables.counters = nullptr;
    const std::string again = name + (apart ? " merged apart" : " again");
    if (!group.launched(again, launch(nullptr))) return;
    group.check_same(again, first, out);
  }
}

// The spans of one batch: (context, queries).
using Lengths = std::vector<std::pair<int, int>>;

const Lengths kMixed = {{0, 5},  {37, 1}, {100, 1}, {0, 70}, {15, 1},  {16, 2},
                        {63, 1}, {0, 1},  {130, 9}, {1, 1},  {999, 33}};
const Lengths kShort = {{0, 5}, {37, 1}, {200, 1}, {0, 70}, {15, 1}, {16, 2}, {130, 9}};
const Lengths kDecode = {{4000, 1}, {17, 1}, {1234, 1}, {0, 1}, {2047, 1}, {64, 1}, {3999, 2}};
const Lengths kPrefill = {{0, 200}, {64, 129}, {1000, 300}, {3, 16}, {0, 17}};

void test_dtype(Group& group, Dtype dtype) {
  const auto run = [&](int heads, int kv_heads, int dim, const Lengths& lengths, How how = {},
                       bool shifted = false) {
    attention_case(group, {dtype, heads, kv_heads, dim, lengths, shifted}, how);
  };
  run(14, 2, 64, kMixed);
  run(28, 4, 128, kMixed);
  run(4, 4, 128, kDecode);
  run(14, 2, 64, kDecode);
  run(28, 4, 128, kDecode);
  run(14, 2, 64, kPrefill);
  run(7, 1, 128, kPrefill);
  for (const int dim : {8, 16, 32, 64, 80, 96, 104, 128, 136, 200, 256}) run(6, 2, dim, kMixed);
  for (const int dim : {2, 10, 100, 250}) run(4, 2, dim, {{0, 5}, {37, 1}, {15, 3}, {130, 9}});
  for (const int dim : {96, 128, 256}) run(4, 2, dim, kShort);
  for (const int group_size : {1, 2, 7, 16})
    for (const int dim : {64, 80, 128, 256})
      run(group_size * 2, 2, dim, {{37, 1}, {100, 1}, {15, 1}, {500, 1}}, {0, false, true});
  for (const int group_size : {1, 2, 3, 4, 5, 8, 12, 16}) {
    run(group_size * 2, 2, 64, {{0, 40}, {300, 1}, {77, 3}, {5, 16}, {129, 7}});
    run(group_size, 1, 128, {{700, 1}, {77, 2}, {12, 20}});
  }
  run(20, 1, 64, {{0, 40}, {300, 1}, {77, 3}});  // a group wider than a decode tile
  for (const int keys : {64, 128, 192, 1024}) run(14, 2, 64, kDecode, {keys});
  for (const int keys : {64, 256}) run(28, 4, 128, kMixed, {keys});
  run(8, 2, 256, kDecode, {512});
  run(1, 1, 64, {{2200, 1}, {5, 1}}, {4096});  // more KV blocks of a warp than it has lanes
  run(14, 2, 64, kMixed, {64, true});
  run(28, 4, 128, kMixed, {0, true});
  run(4, 2, 64, kMixed, {}, true);
  run(4, 2, 64, {{0, 1}});
  run(4, 2, 64, {});
}

// A few spans of short prompts and contexts.
void random_attention(Group& group, Dtype dtype, Random& random) {
  const auto between = [&](int low, int high) {
    return static_cast<int>(random.between(low, high));
  };
  StepSizes sizes;
  sizes.dtype = dtype;
  sizes.kv_heads = between(1, 2);
  sizes.heads = sizes.kv_heads * between(1, random.below(3) > 0 ? 4 : 16);
  sizes.dim = random.below(8) > 0 ? 8 * between(1, 16) : 2 * between(1, 128);
  sizes.lengths.resize(between(1, 4));
  for (auto& [context, queries] : sizes.lengths)
    context = between(0, 90), queries = random.below(2) > 0 ? 1 : between(1, 24);
  sizes.shifted = random.below(12) == 0;
  attention_case(group, sizes,
                 {random.below(4) > 0 ? 0 : 64 * between(1, 3), random.below(4) == 0});
}

}  // namespace

bool test_attention(Dtype dtype, const Selection& selection) {
  Group group(std::string("attention ") + name_of(dtype), selection);
  test_dtype(group, dtype);
  Random random(selection.seed);
  for (int i = 0; i < selection.random_cases; ++i) random_attention(group, dtype, random);
  return group.finish();
}

}  // namespace valora::kernels::cuda
