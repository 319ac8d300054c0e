#include <cmath>
#include <set>
#include <string>

#include "kernels/cuda/branch.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/lora.h"
#include "kernels/cuda/testing/cases/cases.h"
#include "kernels/cuda/testing/cases/factors.h"
#include "kernels/cuda/testing/replay.h"
#include "kernels/cuda/testing/report.h"
#include "kernels/cuda/testing/threads.h"

namespace valora::kernels::cuda {
namespace {

constexpr double kInner = 1e-5;

struct SegmentSizes {
  int begin = 0, end = 0, adapter = 0;
  float coefficient = 1;
};
struct Sizes {
  Dtype dtype = Dtype::kFloat;
  int tokens = 0, in = 0;
  std::vector<int> outs;                // one per slice
  std::vector<std::vector<int>> ranks;  // per adapter and module
  std::vector<SegmentSizes> segments;
  int rows_per_piece = 0;  // 0: factors in one piece
  bool shifted = false;    // neither x nor y is aligned
  bool bounded = false;    // use the tables of a captured step
  bool wide = false;       // with tiles of 32 tokens
  float x_size = 1;
  bool branched = false;  // in a graph, with the shrink in a branch
  bool sums = false;      // y before rounding is given
  bool gated = false;     // the two linears are also gate and up of a gated product

  // Rows of y: those of a captured step include surplus ones.
  int rows() const { return tokens + (bounded ? 3 : 0); }
};

double work_of(const Sizes& s) {
  double work = 0;
  for (const SegmentSizes& segment : s.segments)
    for (size_t m = 0; m < s.ranks[segment.adapter].size(); ++m)
      work += static_cast<double>(segment.end - segment.begin) * s.ranks[segment.adapter][m] *
              (s.in + s.outs[m]);
  return work;
}

std::string describe(const Sizes& s) {
  std::string text = std::string(name_of(s.dtype)) + " tokens " + std::to_string(s.tokens) +
                     " in " + std::to_string(s.in) + " out";
  for (const int n : s.outs) text += " " + std::to_string(n);
  text += " ranks";
  for (size_t i = 0; i < s.ranks.size() && i < 8; ++i) text += " " + std::to_string(s.ranks[i][0]);
  text += " segments";
  for (size_t i = 0; i < s.segments.size() && i < 8; ++i)
    text += " " + std::to_string(s.segments[i].begin) + "-" + std::to_string(s.segments[i].end);
  if (s.rows_per_piece > 0) text += " pieces of " + std::to_string(s.rows_per_piece);
  if (s.bounded) text += s.wide ? " bounded wide" : " bounded";
  if (s.branched) text += " branched";
  if (s.sums) text += " sums";
  if (s.gated) text += " gated";
  if (s.x_size != 1) text += " x " + std::to_string(s.x_size);
  return s.shifted ? text + " shifted" : text;
}

std::string describe(const CudaTile& t) {
  return std::to_string(t.width) + "/" + std::to_string(t.warps) + "/" + std::to_string(t.stages) +
         "/" + std::to_string(t.splits);
}

// Each module of an adapter belongs to one slice; if there are fewer modules than slices, the last
// slice cannot have adapters.
struct Adapters {
  Factors factors;
  std::vector<std::vector<FactorPair>> pairs;  // per adapter and module
  std::vector<std::vector<DeviceLoraModule>> modules;
};

Adapters make_adapters(const Sizes& s, Random& random) {
  Adapters adapters{Factors(s.dtype), {}, {}};
  for (const auto& ranks : s.ranks) {
    auto& pairs = adapters.pairs.emplace_back();
    for (size_t m = 0; m < ranks.size(); ++m)
      pairs.push_back(adapters.factors.add(ranks[m], s.in, s.outs[m], s.rows_per_piece, random));
  }
  adapters.factors.upload(random);
  for (const auto& pairs : adapters.pairs) {
    auto& modules = adapters.modules.emplace_back();
    for (const FactorPair& pair : pairs)
      modules.push_back(adapters.factors.module(pair, 0.5f + 0.25f * random.uniform(0, 4)));
  }
  return adapters;
}

// y += the products of all segments. x: [tokens, x_stride].
void add_products(const Sizes& s, const Adapters& adapters, const std::vector<float>& x,
                  int64_t x_stride, size_t slice, int64_t y_stride, std::vector<Expected>& y) {
  for_each_index(s.tokens, [&](int64_t t) {
    for (const SegmentSizes& segment : s.segments) {
      if (t < segment.begin || t >= segment.end) continue;
      if (slice >= adapters.pairs[segment.adapter].size()) continue;
      const FactorPair& pair = adapters.pairs[segment.adapter][slice];
      const double factor = segment.coefficient * adapters.modules[segment.adapter][slice].scale;
      std::vector<double> low(pair.rank), sizes(pair.rank);
      for (int r = 0; r < pair.rank; ++r) {
        for (int k = 0; k < s.in; ++k) {
          const double term = static_cast<double>(x[t * x_stride + k]) * pair.a[r * s.in + k];
          low[r] += term, sizes[r] += std::abs(term);
        }
        sizes[r] = std::abs(low[r]) + 0.05 * sizes[r];
      }
      for (int o = 0; o < s.outs[slice]; ++o)
        for (int r = 0; r < pair.rank; ++r) {
          const double b = factor * pair.b[static_cast<size_t>(o) * pair.rank + r];
          Expected& e = y[t * y_stride + o];
          e.value += b * low[r], e.size += std::abs(b) * sizes[r];
        }
    }
  });
}

// Launches as a captured step does.
Status replay_branched(const LoraCall& call, const LoraTiles& tiles, void* workspace) {
  const auto launch = [&](cudaStream_t stream) -> Status {
    Branch branch(stream);
    Status status = branch.stream() == stream
                        ? Status{cudaErrorInvalidValue}
                        : lora_shrink(call, tiles, workspace, branch.stream());
    if (status == 0) status = branch.join();
    return status == 0 ? lora_expand(call, tiles, workspace, stream) : status;
  };
  return replay_captured(launch, 1, [] {});
}

class DevicePlan {
 public:
  explicit DevicePlan(const LoraPlan& plan)
      : sizes_(plan.sizes),
        segments_(plan.segments),
        shrink_tiles_(plan.shrink_tiles),
        expand_tiles_(plan.expand_tiles),
        covers_(plan.covers) {}
  void give(LoraCall& call) const {
    call.sizes = sizes_;
    call.tables = {segments_.data(), shrink_tiles_.data(), expand_tiles_.data(), covers_.data()};
  }

 private:
  LoraSizes sizes_;
  DeviceTable<DeviceLoraSegment> segments_;
  DeviceTable<LoraShrinkTile> shrink_tiles_;
  DeviceTable<LoraExpandTile> expand_tiles_;
  DeviceTable<int32_t> covers_;
};

// A plan for bounds larger than the segments need.
LoraPlan bounded_plan(Group& group, const std::string& name, const Sizes& s,
                      const std::vector<DeviceLoraSegment>& segments) {
  LoraPlan plan = plan_lora(segments.data(), segments.size(), s.wide, s.rows());
  std::set<int> cuts;
  int32_t count = 0;
  for (const SegmentSizes& segment : s.segments) {
    if (segment.begin == segment.end) continue;
    cuts.insert({segment.begin, segment.end});
    ++count;
  }
  const LoraSizes bounds =
      bounded_lora_sizes({s.rows(), plan.sizes.rows + 5, count + 1,
                          static_cast<int32_t>(cuts.size()), plan.sizes.tile_tokens});
  group.check(name + " bounds", bound_lora_plan(bounds, plan), "the plan exceeds its bounds");
  group.check(name + " tables",
              plan.shrink_tiles.size() == static_cast<size_t>(bounds.shrink_tiles) &&
                  plan.expand_tiles.size() == static_cast<size_t>(bounds.all_tiles),
              "tables of other sizes than the bounds'");
  return plan;
}

// The expand of a gated product must do what an expand and gate_mul() do. before: what ys were
// before the expand.
void check_gated(Group& group, const std::string& name, const LoraCall& call,
                 const LoraTiles& tiles, const std::vector<std::vector<float>>& before,
                 std::vector<DeviceValues>& ys, size_t shift) {
  const int32_t tokens = call.sizes.tokens, width = call.slices[0].out;
  const size_t count = static_cast<size_t>(tokens) * width;
  const std::vector<std::vector<float>> expanded = {ys[0].get(), ys[1].get()};
  for (const Gate activation : {Gate::kSilu, Gate::kGeluTanh}) {
    for (size_t i = 0; i < 2; ++i) ys[i].set(expanded[i]);
    const LoraSlice *gate = call.slices, *up = gate + 1;
    const DeviceValues expected(count, call.dtype), out(count, call.dtype, shift);
    Status status = gate_mul(activation, call.dtype, gate->y, gate->y_stride, up->y, up->y_stride,
                             expected.data(), tokens, width, nullptr);
    if (!group.launched(name, status)) return;
    for (size_t i = 0; i < 2; ++i) ys[i].set(before[i]);
    const DeviceMemory workspace(lora_workspace_bytes(call, tiles));
    status = lora_shrink(call, tiles, workspace.data(), nullptr);
    if (status == 0)
      status = lora_expand_gated(call, {out.data(), activation}, tiles, workspace.data(), nullptr);
    if (!group.launched(name, status)) return;
    const std::string as = activation == Gate::kSilu ? " silu" : " gelu";
    group.check_same(name + as, expected.get(), out);
    for (size_t i = 0; i < 2; ++i)
      group.check_same(name + as + " leaves slice " + std::to_string(i), before[i], ys[i]);
  }
  for (size_t i = 0; i < 2; ++i) ys[i].set(expanded[i]);
}

// NOLINTNEXTLINE(readability-function-size): a case with its expectations
void lora_case(Group& group, const Sizes& s, const LoraTiles* forced = nullptr) {
  if (!group.takes(work_of(s))) return;
  Random random(s.tokens * 31 + s.in);
  const Dtype dtype = s.dtype;
  const size_t shift = s.shifted ? size_of(dtype) : 0;
  std::string name = describe(s);
  const Adapters adapters = make_adapters(s, random);

  std::vector<DeviceTable<DeviceLoraModule>> tables;
  for (const auto& modules : adapters.modules) tables.emplace_back(modules);
  std::vector<DeviceLoraSegment> segments;
  for (const SegmentSizes& seg : s.segments)
    segments.push_back({seg.begin, seg.end, 0, seg.coefficient, tables[seg.adapter].data()});
  const LoraPlan own = plan_lora(segments.data(), segments.size(), false, s.rows());
  const DevicePlan plan(s.bounded ? bounded_plan(group, name, s, segments) : own);

  LoraCall call;
  const int64_t x_stride = s.in + 8;
  const std::vector<float> x = random.values(s.tokens * x_stride, dtype, s.x_size);
  const DeviceValues dx(x, dtype, shift);
  call.dtype = dtype, call.x = dx.data(), call.x_stride = x_stride, call.in = s.in;
  std::vector<std::vector<float>> before;
  std::vector<std::vector<Expected>> expected;
  std::vector<DeviceValues> ys, sums;
  for (size_t i = 0; i < s.outs.size(); ++i) {
    const int64_t y_stride = s.outs[i] + 16;
    before.push_back(random.values(s.rows() * y_stride, dtype));
    auto& e = expected.emplace_back();
    for (const float v : before.back()) e.push_back({v, 0});
    if (s.sums) {
      sums.emplace_back(random.values(static_cast<size_t>(s.rows()) * s.outs[i], Dtype::kFloat),
                        Dtype::kFloat);
      const std::vector<float> unrounded = sums.back().get();
      for (int t = 0; t < s.rows(); ++t)
        for (int o = 0; o < s.outs[i]; ++o) {
          const float sum = unrounded[static_cast<size_t>(t) * s.outs[i] + o];
          before.back()[t * y_stride + o] = rounded(sum, dtype);
          e[t * y_stride + o] = {sum, 0};
        }
    }
    add_products(s, adapters, x, x_stride, i, y_stride, e);
    ys.emplace_back(before.back(), dtype, shift);
    const bool touched = i < s.ranks[0].size();
    call.slices[i] = {ys.back().data(), y_stride, s.outs[i], touched ? static_cast<int>(i) : -1,
                      s.sums ? static_cast<const float*>(sums.back().data()) : nullptr};
  }
  call.slice_count = static_cast<int>(s.outs.size());
  for (const auto& ranks : s.ranks)
    for (const int rank : ranks) call.max_rank = std::max(call.max_rank, rank);
  plan.give(call);

  const LoraTiles tiles =
      forced != nullptr ? *forced : choose_lora_tiles(call, arch_of(capability()));
  if (forced != nullptr)
    name += " tiles " + describe(tiles.shrink) + " and " + describe(tiles.expand);
  const auto run = [&] {
    const DeviceMemory workspace(lora_workspace_bytes(call, tiles));
    const Status status = s.branched ? replay_branched(call, tiles, workspace.data())
                                     : lora_project(call, tiles, workspace.data(), nullptr);
    const bool launched = group.launched(name, status);
    group.check(name + " workspace", workspace.guards_intact(), "wrote outside of the workspace");
    return launched;
  };
  if (!run()) return;
  for (size_t i = 0; i < ys.size(); ++i)
    group.check(name + " slice " + std::to_string(i), expected[i], ys[i], dtype, kInner);
  if (s.gated) check_gated(group, name, call, tiles, before, ys, shift);
  if (!s.bounded) return;
  std::vector<std::vector<float>> bounded;
  for (size_t i = 0; i < ys.size(); ++i) bounded.push_back(ys[i].get()), ys[i].set(before[i]);
  const DevicePlan unbounded(own);
  unbounded.give(call);
  if (!run()) return;
  for (size_t i = 0; i < ys.size(); ++i)
    group.check_same(name + " as unbounded " + std::to_string(i), bounded[i], ys[i]);
  if (s.gated) check_gated(group, name + " unbounded", call, tiles, before, ys, shift);
}

std::vector<SegmentSizes> one_token_each(int tokens, int adapters) {
  std::vector<SegmentSizes> segments;
  for (int t = 0; t < tokens; ++t) segments.push_back({t, t + 1, t % adapters, 1.0f});
  return segments;
}

// Every compiled tile, with narrow and wide tiles of tokens.
void each_tile(Group& group, Dtype dtype) {
  const std::vector<std::vector<int>> two = {{16, 16, 16}, {8, 64, 0}};
  std::vector<CudaTile> expands;
  for (const int warps : kCudaExpandWarps)
    for (const int groups : kCudaExpandGroups)
      expands.push_back({static_cast<uint16_t>(warps * groups * kCudaGroupOuts),
                         static_cast<uint8_t>(warps), 1, 1});
  size_t next = 0;
  for (const int width : kCudaShrinkWidths)
    for (const int warps : kCudaShrinkWarps)
      for (const int stages : kCudaShrinkStages)
        for (const int splits : kCudaSplits) {
          const CudaTile shrink{static_cast<uint16_t>(width), static_cast<uint8_t>(warps),
                                static_cast<uint8_t>(stages), static_cast<uint8_t>(splits)};
          const LoraTiles tiles{shrink, expands[next++ % expands.size()]};
          lora_case(group, {dtype, 7, 640, {264, 64, 32}, two, {{0, 3, 0, 1}, {3, 7, 1, 2}}},
                    &tiles);
          lora_case(group, {dtype, 90, 200, {264}, {{40}}, {{3, 85, 0, 1}}}, &tiles);
          if (next > expands.size()) continue;  // each expand once
          for (const int tokens : {7, 90}) {
            Sizes gated{dtype,
                        tokens,
                        40,
                        {264, 264},
                        {{16, 16}, {8, 64}},
                        {{0, 3, 0, 1}, {4, tokens, 1, 2}}};
            gated.gated = true;
            lora_case(group, gated, &tiles);
          }
        }
}

// Gate and up: rows without adapters, adapters on one of the two, several per row, and steps that
// are captured.
void gated_cases(Group& group, Dtype dtype) {
  const auto gated = [&](int tokens, int outs, const std::vector<std::vector<int>>& ranks,
                         const std::vector<SegmentSizes>& segments) {
    Sizes s{dtype, tokens, 64, {outs, outs}, ranks, segments};
    s.gated = true;
    return s;
  };
  const std::vector<std::vector<int>> some = {{16, 16}, {0, 8}, {40, 0}, {0, 0}};
  lora_case(group, gated(1, 128, some, {{0, 1, 0, 1}}));
  lora_case(group, gated(5, 64, some, {}));
  lora_case(group, gated(9, 72, {{8}}, {{1, 4, 0, 1}, {4, 8, 0, 2}}));  // up cannot have any
  for (const int outs : {1, 8, 33, 264})
    lora_case(group,
              gated(21, outs, some,
                    {{2, 5, 0, 1}, {5, 6, 1, -2}, {6, 7, 2, 1}, {9, 11, 3, 1}, {3, 20, 0, 1}}));
  for (const bool wide : {false, true}) {
    std::vector<SegmentSizes> mixed = one_token_each(12, 4);
    mixed.push_back({14, 70, 0, 1}), mixed.push_back({60, 75, 2, 0.5f});
    Sizes s = gated(80, 40, some, mixed);
    s.bounded = true, s.wide = wide;
    lora_case(group, s);
  }
  Sizes unrounded = gated(20, 48, some, {{0, 7, 0, 1}, {7, 9, 1, 1}, {11, 17, 2, 1}});
  unrounded.sums = true;
  lora_case(group, unrounded);
  Sizes shifted = gated(9, 32, some, {{0, 5, 0, 1}});
  shifted.shifted = true;
  lora_case(group, shifted);
}

void test_dtype(Group& group, Dtype dtype) {
  const std::vector<std::vector<int>> two = {{16, 16, 16}, {8, 64, 0}};
  lora_case(group, {dtype, 1, 896, {896, 128, 128}, two, {{0, 1, 0, 1}}});
  lora_case(group, {dtype, 1, 4864, {896}, {{16}}, {{0, 1, 0, -0.5f}}});
  lora_case(group, {dtype, 7, 256, {128, 64, 32}, two, {{0, 3, 0, 1}, {3, 7, 1, 2}}});
  // Mixture: one adapter is subtracted from all tokens; others are added to some.
  lora_case(group, {dtype,
                    40,
                    512,
                    {256, 64, 64},
                    {{16, 16, 16}, {8, 64, 0}, {1, 2, 3}},
                    {{0, 40, 0, -1}, {0, 17, 1, 1}, {17, 18, 2, 1}, {30, 40, 1, 0.5f}}});
  lora_case(group, {dtype, 100, 512, {256, 64, 64}, two, {{3, 90, 0, 1}, {10, 60, 1, -1}}});
  for (const int rank : {1, 2, 3, 5, 7, 8, 9, 12, 16, 17, 24, 31, 32, 33, 48, 64, 100, 128, 256})
    lora_case(group, {dtype, 21, 128, {96, 40}, {{rank, rank}}, {{0, 5, 0, 1}, {5, 21, 0, 0.5f}}});
  for (const int in : {1, 7, 8, 24, 31, 40, 72, 100, 136, 1000})
    lora_case(group, {dtype, 18, in, {64}, {{16}}, {{1, 18, 0, 1}}});
  for (const int out : {1, 7, 8, 24, 33, 130, 1000})
    lora_case(group, {dtype, 18, 64, {out, 8}, {{16, 4}}, {{0, 17, 0, 1}}});
  for (const int piece : {1, 3, 8, 16}) {
    lora_case(group, {dtype, 9, 256, {128, 64, 32}, two, {{0, 3, 0, 1}, {3, 9, 1, 2}}, piece});
    lora_case(group, {dtype, 80, 64, {40}, {{24}}, {{0, 80, 0, 1}}, piece});
  }
  // Empty segments, adapters that touch no module, tokens without adapters, and no segments at all.
  lora_case(group, {dtype,
                    12,
                    64,
                    {32, 16},
                    {{0, 0}, {4, 0}},
                    {{0, 0, 1, 1}, {2, 5, 0, 1}, {5, 5, 0, 1}, {5, 9, 1, 1}, {9, 12, 0, 1}}});
  lora_case(group, {dtype, 4, 64, {32}, {{4}}, {}});
  lora_case(group, {dtype, 6, 64, {32, 48}, {{4}}, {{0, 6, 0, 1}}});  // the second has no module
  lora_case(group, {dtype, 9, 64, {32, 48, 8}, two, {{0, 9, 0, 1}}, 0, true});
  Sizes branched{dtype, 7, 256, {128, 64, 32}, two, {{0, 3, 0, 1}, {3, 7, 1, 2}}};
  branched.branched = true;
  lora_case(group, branched);
  Sizes unrounded{dtype, 40, 64, {128, 33}, {{8, 3}, {0, 16}}, {{0, 17, 0, 1}, {9, 33, 1, -2}}};
  unrounded.sums = true;
  lora_case(group, unrounded);
  // Low-rank values outside the range of fp16.
  Sizes large{dtype, 20, 512, {64, 16}, {{8, 8}, {6, 8}}, {{0, 17, 0, 1.5f}, {5, 20, 1, 1}}};
  large.x_size = 4e4f;
  lora_case(group, large);
  std::vector<std::vector<int>> many;
  for (int i = 0; i < 32; ++i) many.push_back({i % 3 == 0 ? 64 : 16, i % 5 == 0 ? 0 : 16, 8});
  lora_case(group, {dtype, 32, 896, {896, 128, 128}, many, one_token_each(32, 32)});
  // A prompt in the same batch as decodes.
  std::vector<SegmentSizes> mixed = one_token_each(12, 12);
  mixed.push_back({12, 98, 3, 1}), mixed.push_back({98, 101, 4, 0.5f});
  for (const bool wide : {false, true})
    lora_case(group, {dtype, 101, 128, {264, 40, 16}, many, mixed, 0, false, true, wide});
  std::vector<SegmentSizes> overlapping;
  for (int i = 0; i < 20; ++i) overlapping.push_back({i, 90 - 3 * i, i, 1.0f - 0.1f * i});
  lora_case(group, {dtype, 90, 128, {64, 72, 8}, many, overlapping});
  lora_case(group, {dtype, 1500, 896, {128}, {{16}, {64}}, {{0, 1000, 0, 1}, {1000, 1500, 1, 1}}});
  gated_cases(group, dtype);
  each_tile(group, dtype);
}

// Up to four adapters on one to three linears, in segments with gaps, and sometimes an additional
// adapter on all tokens.
void random_lora(Group& group, Dtype dtype, Random& random) {
  const auto between = [&](int low, int high) {
    return static_cast<int>(random.between(low, high));
  };
  Sizes s;
  s.dtype = dtype;
  s.bounded = random.below(2) > 0;
  s.wide = s.bounded && random.below(2) > 0;
  s.tokens = between(1, 90);
  s.in = between(1, 30) * (random.below(4) > 0 ? 8 : 5);
  s.outs.resize(between(1, kMaxLoraSlices));
  for (int& out : s.outs) out = between(1, 40) * (random.below(3) > 0 ? 8 : 1);
  s.ranks.resize(between(1, 4));
  const size_t modules = between(1, static_cast<int>(s.outs.size()));
  for (auto& ranks : s.ranks)
    for (size_t m = 0; m < modules; ++m) ranks.push_back(random.below(6) > 0 ? between(1, 40) : 0);
  const auto adapter = [&] { return between(0, static_cast<int>(s.ranks.size()) - 1); };
  for (int token = 0; token < s.tokens;) {
    const int end = std::min(token + between(1, random.below(2) > 0 ? 5 : 40), s.tokens);
    if (random.below(4) > 0) s.segments.push_back({token, end, adapter(), random.uniform(-2, 2)});
    token = end;
  }
  if (random.below(2) > 0) s.segments.push_back({0, s.tokens, adapter(), -1});
  s.rows_per_piece = random.below(3) > 0 ? 0 : between(1, 20);
  s.shifted = random.below(8) == 0;
  s.branched = random.below(3) == 0;
  s.sums = random.below(3) == 0;
  s.gated = s.outs.size() == 2;
  if (s.gated) s.outs[1] = s.outs[0];
  lora_case(group, s);
}

}  // namespace

bool test_lora(Dtype dtype, const Selection& selection) {
  Group group(std::string("lora ") + name_of(dtype), selection);
  test_dtype(group, dtype);
  Random random(selection.seed);
  for (int i = 0; i < selection.random_cases; ++i) random_lora(group, dtype, random);
  return group.finish();
}

}  // namespace valora::kernels::cuda
