#include "kernels/cuda/testing/cases/attention_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/testing/replay.h"

namespace valora::kernels::cuda {
namespace {

// Covers the kernels' rounding of the attention weights to the dtype before they multiply the
// values, and of numbers decoded from codes.
double inner_error(const StepSizes& sizes) {
  const double unit = unit_roundoff(sizes.dtype);
  if (sizes.dtype == Dtype::kFloat) return 1e-5;
  return in_bytes(sizes.format) ? 6 * unit + 2e-5 : unit + 2e-5;
}

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

}  // namespace

// NOLINTNEXTLINE(readability-function-size): a case with its expectations
void attention_case(Group& group, const StepSizes& sizes, const AttentionHow& how) {
  if (!group.takes(work_of(sizes))) return;
  const AttentionStep step = make_step(sizes);
  std::string name = step.name;
  AttentionShape shape = step.shape();
  shape.flashinfer = how.flashinfer, shape.hopper = capability() == 90;
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

}  // namespace valora::kernels::cuda
