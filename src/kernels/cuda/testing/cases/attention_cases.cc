#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/testing/cases/attention_step.h"
#include "kernels/cuda/testing/cases/cases.h"
#include "kernels/cuda/testing/replay.h"
#include "kernels/cuda/testing/report.h"

namespace valora::kernels::cuda {
namespace {

// Covers the kernels' rounding of the attention weights to the dtype before they multiply the
// values, and of numbers decoded from codes.
double inner_error(const StepSizes& sizes) {
  const double unit = unit_roundoff(sizes.dtype);
  if (sizes.dtype == Dtype::kFloat) return 1e-5;
  return in_bytes(sizes.format) ? 6 * unit + 2e-5 : unit + 2e-5;
}

struct How {
  int split_keys = 0;       // 0: chosen by the plan
  bool graph = false;       // capture the launches and replay them twice
  bool bounded = false;     // use the tables of a captured step
  bool flashinfer = false;  // prompts by FlashInfer's kernels, where they are compiled
};

double work_of(const StepSizes& sizes) {
  double work = 0;
  for (const auto& [context, queries] : sizes.lengths)
    work += 2.0 * queries * (context + queries) * sizes.heads * sizes.dim;
  return work;
}

// A step in device memory.
struct DeviceStep {
  explicit DeviceStep(const AttentionStep& s)
      : pool(in_bytes(s.sizes.format) ? std::vector<float>() : s.pool_before, s.sizes.dtype,
             s.shift()),
        bytes(s.bytes_before.size(), s.shift()),
        q(s.q, s.sizes.dtype, s.shift()),
        k(s.k, s.sizes.dtype, s.shift()),
        v(s.v, s.sizes.dtype, s.shift()),
        out(static_cast<size_t>(s.tokens) * s.sizes.heads * s.sizes.dim, s.sizes.dtype, s.shift()) {
    bytes.upload(s.bytes_before.data(), s.bytes_before.size());
  }
  DeviceValues pool;
  DeviceMemory bytes;
  DeviceValues q, k, v, out;
};

class Tables {
 public:
  // split_keys: 0: chosen by the plan.
  Tables(const AttentionPlan& plan, const AttentionStep& step, int split_keys)
      : sizes_(sizes_in_window(step.shape(), plan.sizes, step.sizes.rule.window)),
        spans_(plan.spans),
        blocks_(plan.block_tables),
        slots_(plan.slots),
        tiles_(plan.tiles),
        ends_(plan.ends),
        prompts_(plan.prompts),
        workspace_(attention_workspace_bytes(plan.sizes, step.sizes.kv_heads, step.sizes.dim)),
        prompt_parts_(prompt_workspace_bytes(plan.sizes, step.sizes.heads, step.sizes.dim)),
        zeros_(attention_counters(plan.sizes, step.sizes.kv_heads), 0),
        counters_(zeros_.size() * sizeof(uint32_t)) {
    counters_.upload(zeros_.data(), counters_.size());
    if (split_keys > 0) sizes_.split_keys = split_keys;
  }

  // apart: merge the parts of decodes in a separate launch.
  int launch(const AttentionStep& step, const DeviceStep& on, Stream stream,
             bool apart = false) const {
    const StepSizes& s = step.sizes;
    const bool bytes = in_bytes(s.format);
    const KvCache cache{bytes ? on.bytes.data() : on.pool.data(),
                        bytes ? step.byte_stride : step.block_stride,
                        bytes ? step.byte_offset : step.layer_offset,
                        s.kv_heads,
                        s.dim,
                        s.dtype,
                        s.format};
    const int status = store_kv(cache, {on.k.data(), step.kv_stride}, {on.v.data(), step.kv_stride},
                                slots_.data(), step.tokens, stream);
    if (status != 0) return status;
    return paged_attention(
        cache, {on.q.data(), step.q_stride}, s.heads, on.out.data(), s.rule, sizes_,
        {spans_.data(), blocks_.data(), slots_.data(), tiles_.data(),
         apart ? nullptr : reinterpret_cast<uint32_t*>(counters_.data()),
         sizes_.joint ? ends_.data() : nullptr, prompts_.data(), prompt_parts_.data()},
        workspace_.data(), stream);
  }
  int launch_graph(const AttentionStep& step, const DeviceStep& on) const {
    return replay_captured([&](cudaStream_t stream) { return launch(step, on, stream); }, 2,
                           [&] { on.out.memory().poison(); });
  }
  int split_keys() const { return sizes_.split_keys; }
  bool guards_intact() const { return workspace_.guards_intact() && prompt_parts_.guards_intact(); }
  void poison_workspace() const { workspace_.poison(); }
  bool counts() const { return !zeros_.empty(); }
  bool counters_are_zeros() const {
    std::vector<uint32_t> values(zeros_.size());
    std::memcpy(values.data(), counters_.download().data(), counters_.size());
    return counters_.guards_intact() && values == zeros_;
  }

 private:
  AttentionSizes sizes_;
  DeviceTable<DeviceSpan> spans_;
  DeviceTable<int32_t> blocks_;
  DeviceTable<int64_t> slots_;
  DeviceTable<AttentionTile> tiles_;
  DeviceTable<int32_t> ends_;
  DeviceTable<int32_t> prompts_;
  DeviceMemory workspace_, prompt_parts_;
  std::vector<uint32_t> zeros_;
  DeviceMemory counters_;
};

// The counters are zero again, and neither a second launch nor a separate merge changes the
// results.
void check_counters(Group& group, const std::string& name, const AttentionStep& step,
                    const DeviceStep& on, const Tables& tables) {
  if (!tables.counts()) return;
  const std::vector<float> first = on.out.get();
  for (const bool apart : {false, true}) {
    group.check(name + " counters", tables.counters_are_zeros(),
                "the counters are not zeros again");
    on.out.memory().poison();
    tables.poison_workspace();
    const std::string again = name + (apart ? " merged apart" : " again");
    if (!group.launched(again, tables.launch(step, on, nullptr, apart))) return;
    group.check_same(again, first, on.out);
  }
}

// The plan for bounds larger than the step, which also allow for kinds of spans that it lacks.
AttentionPlan bounded_plan(Group& group, const std::string& name, const AttentionStep& step,
                           const AttentionShape& shape, const AttentionSizes& own) {
  const int32_t group_size = shape.heads / shape.kv_heads;
  AttentionBounds bounds;
  bounds.tokens = static_cast<int32_t>(step.tokens) + 5;
  bounds.decode_spans = own.decode_spans + 3;
  bounds.decode_queries = own.decode_rows > group_size ? decode_queries(shape) : 1;
  bounds.longest = own.longest + 100;
  bounds.other_spans = static_cast<int32_t>(step.spans.size()) - own.decode_spans + 1;
  bounds.joint = !step.sizes.joint.empty();
  const AttentionSizes sizes = bounded_attention_sizes(shape, bounds);
  const auto plan = plan_bounded_attention(shape, sizes, step.spans.data(), step.spans.size());
  group.check(name + " bounds", plan.has_value(), "the plan exceeds its bounds");
  if (!plan) return {};
  size_t used = 0;
  for (const QuerySpan& span : step.spans)
    used += (span.context + span.queries + kBlockTokens - 1) / kBlockTokens;
  const bool fixed = plan->spans.size() == static_cast<size_t>(sizes.decode_spans) +
                                               static_cast<size_t>(sizes.tiles) &&
                     plan->tiles.size() == static_cast<size_t>(sizes.tiles) &&
                     plan->slots.size() == static_cast<size_t>(bounds.tokens) &&
                     plan->ends.size() == (bounds.joint ? plan->slots.size() : 0);
  group.check(name + " tables", plan->block_tables.size() == used && fixed,
              "tables of other sizes than the bounds' or, of blocks, the step's");
  group.check(name + " surplus slots",
              std::all_of(plan->slots.begin() + step.tokens, plan->slots.end(),
                          [](int64_t slot) { return slot == -1; }),
              "a token beyond the step is stored");
  return *plan;
}

// NOLINTNEXTLINE(readability-function-size): a case with its expectations
void attention_case(Group& group, const StepSizes& sizes, const How& how = {}) {
  if (!group.takes(work_of(sizes))) return;
  const AttentionStep step = make_step(sizes);
  std::string name = step.name;
  AttentionShape shape = step.shape();
  shape.flashinfer = how.flashinfer;
  if (how.flashinfer) name += flashinfer_takes(shape) ? " by FlashInfer" : "";
  const AttentionPlan own =
      plan_attention(shape, step.spans.data(), step.spans.size(), step.tokens);
  AttentionPlan plan = own;
  const bool bounded = how.bounded && decode_fits(shape);
  if (bounded) {
    name += " bounded";
    plan = bounded_plan(group, name, step, shape, own.sizes);
    if (plan.slots.empty()) return;
  }
  if (how.split_keys > 0) {
    plan.sizes.split_keys = how.split_keys;
    name += " split " + std::to_string(how.split_keys);
  }
  const Dtype dtype = sizes.dtype;
  // Surplus table entries, as in a graph replayed with fewer spans.
  if (how.graph) {
    name += " graph";
    plan.spans.insert(plan.spans.begin() + plan.sizes.decode_spans, DeviceSpan{});
    for (AttentionTile& tile : plan.tiles)
      if (tile.span >= 0) ++tile.span;
    plan.sizes.decode_spans += plan.sizes.kernels == AttentionKernels::kTensorCores ? 1 : 0;
    plan.tiles.push_back({});
    ++plan.sizes.tiles;
    plan.sizes.longest += 100;
    if (plan.sizes.decode_rows == 0) plan.sizes.decode_rows = 1;
  }
  const DeviceStep on(step);
  const Tables tables(plan, step, how.split_keys);
  const int status = how.graph ? tables.launch_graph(step, on) : tables.launch(step, on, nullptr);
  if (!group.launched(name, status)) return;
  if (in_bytes(sizes.format))
    group.check(name + " store",
                on.bytes.download() == step.bytes_after && on.bytes.guards_intact(),
                "other bytes than the format's");
  else
    group.check_same(name + " store", step.pool_after, on.pool);
  group.check(name, expected_attention(step), on.out, dtype, inner_error(sizes));
  group.check(name + " workspace", tables.guards_intact(), "wrote outside of the workspace");
  check_counters(group, name, step, on, tables);
  if (!bounded || flashinfer_takes(shape)) return;  // whose parts of keys depend on the bounds
  AttentionPlan same = own;
  same.sizes.split_keys = plan.sizes.split_keys;
  const DeviceStep other(step);
  const Tables unbounded(same, step, tables.split_keys());
  if (!group.launched(name + " unbounded", unbounded.launch(step, other, nullptr))) return;
  group.check_same(name + " as unbounded", other.out.get(), on.out);
}

// (context, queries) of each span in a batch.
using Lengths = std::vector<std::pair<int, int>>;

const Lengths kMixed = {{0, 5},  {37, 1}, {100, 1}, {0, 70}, {15, 1},  {16, 2},
                        {63, 1}, {0, 1},  {130, 9}, {1, 1},  {999, 33}};
const Lengths kShort = {{0, 5}, {37, 1}, {200, 1}, {0, 70}, {15, 1}, {16, 2}, {130, 9}};
const Lengths kDecode = {{4000, 1}, {17, 1}, {1234, 1}, {0, 1}, {2047, 1}, {64, 1}, {3999, 2}};
const Lengths kPrefill = {{0, 200}, {64, 129}, {1000, 300}, {3, 16}, {0, 17}};

// Steps with windows, joint ranges and scales.
void test_rules(Group& group, Dtype dtype) {
  const Lengths few = {{110, 12}, {90, 1}, {3, 2}}, tiny = {{50, 3}, {15, 4}, {60, 1}};
  const std::vector<PositionRange> joint = {{1, 4},     {10, 12},   {16, 18},    {40, 53},
                                            {115, 122}, {131, 139}, {1001, 1032}};
  const auto run = [&](int heads, int kv_heads, int dim, const Lengths& lengths,
                       const AttentionRule& rule, bool joined = false, How how = {},
                       KvFormat format = KvFormat::kPlain) {
    StepSizes sizes{dtype, heads, kv_heads, dim, lengths};
    sizes.format = format, sizes.rule = rule;
    if (joined) sizes.joint = joint;
    attention_case(group, sizes, how);
  };
  for (const bool joined : {false, true}) {
    for (const int window : {1, 16, 17, 40}) {
      run(2, 1, 10, tiny, {window}, joined);
      run(2, 1, 64, {{0, 53}, {37, 1}, {16, 2}, {130, 9}}, {window}, joined,
          {0, false, window == 17});
    }
    for (const int window : {0, 20})  // tiles of 8 queries, of which some end within joint ranges
      run(16, 1, 8, {{0, 53}, {110, 12}}, {window}, joined);
    run(2, 1, joined ? 128 : 256, few, {50, 0.3}, joined);
    run(2, 1, 64, few, {}, joined, {0, true});
    run(2, 1, 64, few, {50}, joined, {0, false, joined}, joined ? KvFormat::kInt8 : KvFormat::kFp8);
    // Windows that end within parts of the keys, and parts before the windows of some queries.
    run(1, 1, 64, {{200, 16}, {0, 9}}, {joined ? 5 : 70}, joined, {64});
    for (const int window : {33, 64, 500}) {  // with much work
      for (const int dim : {64, 128, 256}) run(28, 4, dim, kMixed, {window, 0.1}, joined);
      run(14, 2, 64, kMixed, {window}, joined, {0, false, true}, KvFormat::kInt8);
      run(7, 1, 128, kPrefill, {window}, joined, {0, true});
    }
  }
  run(14, 2, 64, kDecode, {700}, false, {0, true, true});
  run(8, 2, 256, kDecode, {1024, 0.0625}, false, {0, false, true});
  run(1, 1, 64, {{2200, 1}, {5, 1}}, {2150}, false, {4096});
  run(2, 1, 10, tiny, {int64_t{1} << 40});
}

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
      for (const Lengths& lengths : {Lengths{{37, 1}, {100, 1}, {15, 1}, {500, 1}},
                                     Lengths{{37, 1}, {0, 40}, {64, 19}, {15, 2}, {300, 1}}})
        run(group_size * 2, 2, dim, lengths, {0, false, true});
  run(14, 2, 64, kMixed, {0, false, true});
  run(28, 4, 128, kMixed, {0, true, true});
  run(14, 2, 64, kPrefill, {0, false, true});
  for (const int group_size : {1, 2, 3, 4, 5, 8, 12, 16}) {
    run(group_size * 2, 2, 64, {{0, 40}, {300, 1}, {77, 3}, {5, 16}, {129, 7}});
    run(group_size, 1, 128, {{700, 1}, {77, 2}, {12, 20}});
  }
  run(20, 1, 64, {{0, 40}, {300, 1}, {77, 3}});  // a group wider than a decode tile
  for (const int keys : {64, 128, 192, 1024}) run(14, 2, 64, kDecode, {keys});
  for (const int keys : {64, 256}) run(28, 4, 128, kMixed, {keys});
  run(8, 2, 256, kDecode, {512});
  run(1, 1, 64, {{2200, 1}, {5, 1}}, {4096});  // one warp has more KV blocks than lanes
  run(14, 2, 64, kMixed, {64, true});
  run(28, 4, 128, kMixed, {0, true});
  run(4, 2, 64, kMixed, {}, true);
  for (const KvFormat format : {KvFormat::kInt8, KvFormat::kFp8}) {
    for (const int dim : {8, 64, 80, 96, 128, 256})
      attention_case(group, {dtype, 4, 2, dim, kShort, false, 24, format});
    attention_case(group, {dtype, 14, 2, 64, kMixed, false, 24, format}, {64, true});
    attention_case(group, {dtype, 4, 2, 10, kShort, true, 24, format});
  }
  run(4, 2, 64, {{0, 1}});
  run(4, 2, 64, {});
}

// Prompts by FlashInfer's kernels, or by what takes their place in the emulation: alone and beside
// decodes, with whole keys and with parts of them, in captured steps, and what they do not take.
void test_flashinfer(Group& group, Dtype dtype) {
  const auto run = [&](int heads, int kv_heads, int dim, const Lengths& lengths, How how = {},
                       const AttentionRule& rule = {}) {
    if (!flashinfer_takes({heads, kv_heads, dim, dtype, true, 132, 227 << 10, true})) return;
    StepSizes sizes{dtype, heads, kv_heads, dim, lengths};
    sizes.rule = rule, how.flashinfer = true;
    attention_case(group, sizes, how);
  };
  const Lengths split = {{700, 20}, {37, 1}, {0, 17}}, many = {{0, 40}, {300, 1}, {77, 3}, {5, 21}};
  for (const int dim : {64, 128, 256}) {
    run(2, 2, dim, {{700, 20}});
    run(2, 1, dim, split);
    run(4, 2, dim, many, {0, false, true});
    run(2, 1, dim, split, {0, true, true});
  }
  run(7, 1, 64, {{0, 53}, {110, 12}}, {}, {0, 0.3});
  run(2, 1, 64, split, {0, true}, {33});
  for (const bool bounded : {false, true}) {  // with much work
    for (const int heads : {4, 14, 28, 32}) {
      run(heads, heads % 4 == 0 ? 4 : 2, 128, kMixed, {0, bounded, bounded});
      run(heads, 2, 64, kPrefill, {0, false, bounded});
    }
    run(8, 2, 256, kMixed, {0, false, bounded});
    run(28, 4, 128, {{4000, 30}, {1234, 1}, {0, 300}}, {0, false, bounded});
    run(8, 8, 128, {{0, 2500}, {100, 70}}, {0, bounded, false});
  }
  StepSizes bytes{dtype, 4, 2, 64, kShort};
  bytes.format = KvFormat::kInt8;
  attention_case(group, bytes, {0, false, false, true});
}

// A few spans with short prompts and contexts.
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
  if (random.below(3) == 0) sizes.format = random.below(2) > 0 ? KvFormat::kInt8 : KvFormat::kFp8;
  if (random.below(2) == 0) sizes.rule.window = between(1, random.below(2) > 0 ? 30 : 120);
  if (random.below(4) == 0) sizes.rule.scale = 0.3;
  for (int at = random.below(3) > 0 ? 200 : between(0, 12); at < 110; at += between(0, 20)) {
    const int end = at + between(1, 30);
    sizes.joint.push_back({at, end});
    at = end;
  }
  attention_case(group, sizes,
                 {random.below(4) > 0 ? 0 : 64 * between(1, 3), random.below(4) == 0,
                  random.below(2) == 0, random.below(3) == 0});
}

}  // namespace

bool test_attention(Dtype dtype, const Selection& selection) {
  Group group(std::string("attention ") + name_of(dtype), selection);
  test_dtype(group, dtype);
  test_rules(group, dtype);
  test_flashinfer(group, dtype);
  Random random(selection.seed);
  for (int i = 0; i < selection.random_cases; ++i) random_attention(group, dtype, random);
  return group.finish();
}

}  // namespace valora::kernels::cuda
