#include <algorithm>
#include <string>
#include <vector>

#include "kernels/cuda/bench/model.h"
#include "kernels/cuda/bench/timing.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/lora.h"
#include "kernels/cuda/testing/values.h"

namespace valora::kernels::cuda {
namespace {

constexpr Dtype kDtype = Dtype::kBf16;
constexpr int kMostSets = 600;

struct Projection {
  const char* name;
  int in;
  std::vector<int> outs;
};
struct Batch {
  int tokens, adapters, rank;
};

// Gate and up: with the activation in the expand, and in a launch of its own.
template <typename CallOf>
void bench_gated(const std::string& name, const CallOf& call, const LoraTiles& tiles, int sets,
                 double bytes, const Figures& figures) {
  const LoraCall first = call(0);
  const int tokens = first.sizes.tokens, width = first.slices[0].out;
  const DeviceMemory workspace(lora_workspace_bytes(first, tiles)), out(size_t{2} * tokens * width);
  const auto time = [&](bool together) {
    return seconds_per_launch(
        [&](int set, Stream stream) {
          const LoraCall c = call(set);
          Status status = lora_shrink(c, tiles, workspace.data(), stream);
          if (status != 0) return status;
          if (together) return lora_expand_gated(c, {out.data()}, tiles, workspace.data(), stream);
          status = lora_expand(c, tiles, workspace.data(), stream);
          const LoraSlice &gate = c.slices[0], &up = c.slices[1];
          return status != 0 ? status
                             : gate_mul(Gate::kSilu, kDtype, gate.y, gate.y_stride, up.y,
                                        up.y_stride, out.data(), tokens, width, stream);
        },
        sets);
  };
  print_result(name + " with SiLU", time(true), bytes, 0, figures);
  print_result(name + " and SiLU", time(false), bytes, 0, figures);
}

// Adapters for `sets` projections, adjacent in one allocation. Adapters apply to equal runs of
// tokens.
void bench_projection(const ModelSizes& model, const Projection& p, const Batch& batch,
                      const Figures& figures) {
  const int slices = static_cast<int>(p.outs.size());
  int64_t outs = 0, factor_elements = 0;
  for (const int out : p.outs) {
    outs += out;
    factor_elements += int64_t{batch.rank} * (p.in + out);
  }
  const int64_t set_elements = factor_elements * batch.adapters;
  const double bytes =
      2.0 * (set_elements + int64_t{batch.tokens} * p.in + 2 * int64_t{batch.tokens} * outs);
  const int sets = rotations(static_cast<size_t>(bytes), kMostSets);
  const DeviceMemory pool(set_elements * sets * 2);
  require(cudaMemset(pool.data(), 0x3c, pool.size()), "cudaMemset");
  std::vector<DeviceTable<DeviceLoraModule>> tables;
  const std::byte* next = pool.data();
  const auto take = [&](int64_t elements) {
    const std::byte* at = next;
    next += 2 * elements;
    return DeviceLoraFactor{at, nullptr, 0};
  };
  for (int a = 0; a < batch.adapters; ++a) {
    std::vector<DeviceLoraModule> modules;
    for (int set = 0; set < sets; ++set)
      for (const int out : p.outs) {
        const DeviceLoraFactor down = take(int64_t{batch.rank} * p.in),
                               up = take(int64_t{batch.rank} * out);
        modules.push_back({down, up, batch.rank, p.in, out, 1});
      }
    tables.emplace_back(modules);
  }
  std::vector<DeviceLoraSegment> segments;
  const int run = batch.tokens / batch.adapters;
  for (int a = 0; a < batch.adapters; ++a)
    segments.push_back({a * run, (a + 1) * run, 0, 1, tables[a].data()});
  const LoraPlan plan = plan_lora(segments.data(), segments.size(), false, batch.tokens);
  const DeviceTable<DeviceLoraSegment> segment_table(plan.segments);
  const DeviceTable<LoraShrinkTile> shrink_tiles(plan.shrink_tiles);
  const DeviceTable<LoraExpandTile> expand_tiles(plan.expand_tiles);
  const DeviceTable<int32_t> covers(plan.covers);

  const int64_t y_elements = int64_t{batch.tokens} * outs;
  const DeviceMemory x(int64_t{batch.tokens} * p.in * sets * 2), y(y_elements * sets * 2);
  require(cudaMemset(x.data(), 0x3c, x.size()), "cudaMemset");
  require(cudaMemset(y.data(), 0x3c, y.size()), "cudaMemset");
  const auto call = [&](int set) {
    LoraCall c;
    c.dtype = kDtype, c.in = p.in, c.x_stride = p.in;
    c.x = x.data() + 2 * int64_t{batch.tokens} * p.in * set;
    int64_t column = 0;
    for (int i = 0; i < slices; ++i) {
      c.slices[i] = {y.data() + 2 * (y_elements * set + column), outs, p.outs[i], set * slices + i};
      column += p.outs[i];
    }
    c.slice_count = slices, c.max_rank = batch.rank, c.sizes = plan.sizes;
    c.tables = {segment_table.data(), shrink_tiles.data(), expand_tiles.data(), covers.data()};
    return c;
  };
  const LoraTiles tiles = choose_lora_tiles(call(0), arch_of(capability()));
  const DeviceMemory workspace(lora_workspace_bytes(call(0), tiles));
  const double shrink = seconds_per_launch(
      [&](int set, Stream stream) {
        return lora_shrink(call(set), tiles, workspace.data(), stream);
      },
      sets);
  const double both = seconds_per_launch(
      [&](int set, Stream stream) {
        return lora_project(call(set), tiles, workspace.data(), stream);
      },
      sets);
  const std::string name = std::string("lora ") + model.name + " " + p.name + " tokens " +
                           std::to_string(batch.tokens) + " adapters " +
                           std::to_string(batch.adapters) + " rank " + std::to_string(batch.rank);
  print_result(
      name + " (shrink " + std::to_string(static_cast<int>(shrink * 1e7) / 10.0).substr(0, 5) + ")",
      both, bytes, 0, figures);
  if (slices == 2) bench_gated(name, call, tiles, sets, bytes, figures);
}

}  // namespace

void bench_lora(const Figures& figures) {
  for (const ModelSizes& m : kModels) {
    const int kv = m.kv_heads * m.dim;
    const Projection qkv{"qkv", m.hidden, {m.heads * m.dim, kv, kv}},
        gate_up{"gate_up", m.hidden, {m.inter, m.inter}}, down{"down", m.inter, {m.hidden}};
    for (const int rank : {16, 64}) {
      for (const int adapters : {1, 8, 32})
        for (const Projection* p : {&qkv, &gate_up, &down})
          bench_projection(m, *p, {32, adapters, rank}, figures);
      bench_projection(m, qkv, {1, 1, rank}, figures);
      for (const int tokens : {512, 2048}) {
        bench_projection(m, qkv, {tokens, 1, rank}, figures);
        bench_projection(m, down, {tokens, 4, rank}, figures);
      }
    }
  }
}

}  // namespace valora::kernels::cuda
