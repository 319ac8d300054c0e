#include "ops/step/step_tables.h"

#include <algorithm>

#include "ops/attention/attention_cuda.h"
#include "ops/delta/gated_delta_cuda.h"
#include "ops/device/cuda_types.h"
#include "ops/device/dispatch.h"
#include "ops/lora/lora_cuda.h"
#include "ops/lora/outputs_cuda.h"

namespace valora::ops {
namespace {

// All tables except block tables: spans, slots, tiles, segments; a few bytes per token each.
constexpr size_t kFixedBytes = 512 << 10;
constexpr size_t kMostBytes = kFixedBytes + kMostStepBlocks * sizeof(int32_t);

// The same with the blocks of a step's states: before, after, and kept ones.
size_t most_bytes(int32_t state_blocks) {
  constexpr size_t kLists = 2 + StateSpan::kMostKept;
  return kMostBytes + kLists * kMostStepSpans * static_cast<size_t>(state_blocks) * sizeof(int32_t);
}

// segments: with token_begin and token_end.
StepShape::Segments shape_of(const auto& segments) {
  StepShape::Segments shape;
  std::vector<int64_t> cuts;
  for (const auto& s : segments) {
    shape.rows += s.token_end - s.token_begin;
    cuts.insert(cuts.end(), {s.token_begin, s.token_end});
  }
  std::ranges::sort(cuts);
  shape.count = static_cast<int64_t>(segments.size());
  shape.ranges = cuts.empty() ? 0 : std::ranges::unique(cuts).begin() - cuts.begin() - 1;
  return shape;
}

void add_adapters(const LoraBatch& lora, StepShape& step) {
  step.lora = shape_of(lora.segments());
  step.outputs = shape_of(lora.outputs());
  for (size_t i = 0; i < lora.segments().size(); ++i) {
    const kernels::LoraSegment& s = lora.segments()[i];
    step.lora_longest = std::max(step.lora_longest, s.token_end - s.token_begin);
    step.max_rank = std::max(step.max_rank, lora.adapter(i).max_rank());
  }
}

kernels::cuda::AttentionBounds attention_bounds(const kernels::cuda::AttentionShape& shape,
                                                const StepBounds& bounds) {
  return {
      bounds.tokens,  bounds.decodes, bounds.embedded ? kernels::cuda::decode_queries(shape) : 1,
      bounds.longest, bounds.prompts, bounds.joint};
}

kernels::cuda::LoraBounds lora_bounds(const StepBounds& bounds, int32_t layers, int32_t tile) {
  return {bounds.tokens, layers * bounds.tokens, layers * bounds.spans(), layers * bounds.spans(),
          tile};
}

struct AddedStates {
  kernels::cuda::StatePlan plan;
  StateOffsets offsets{};
};

}  // namespace

bool steps_can_be_captured(const KvArena& arena, int64_t heads) {
  return target_of(arena.dtype(), arena.data().device()) == Target::kCuda &&
         kernels::cuda::decode_fits(attention_shape(arena, heads, true));
}

std::optional<StepBounds> step_bounds(const KvArena& arena, int64_t heads,
                                      std::span<const QuerySpan> spans, const LoraBatch& lora,
                                      bool embedded) {
  const int64_t most = kernels::cuda::decode_queries(attention_shape(arena, heads, true));
  StepShape step;
  step.embedded = embedded;
  for (const QuerySpan& span : spans) {
    const int64_t keys = span.context + span.queries;
    step.tokens = std::max(step.tokens, span.begin + span.queries);
    step.joint = step.joint || kernels::cuda::has_joint_queries(span);
    step.blocks += (keys + kernels::kBlockTokens - 1) / kernels::kBlockTokens;
    if (span.queries > most) {
      ++step.prompts;
      continue;
    }
    ++step.decodes;
    step.most_queries = std::max(step.most_queries, span.queries);
    step.longest = std::max(step.longest, keys);
  }
  add_adapters(lora, step);
  return bounds_of(step);
}

struct StepTables::Tables {
  StepBounds bounds;
  at::Device device;
  std::shared_ptr<DeviceTables> memory;
  SpanTables spans;
  StateSpanTables states;
  int32_t state_blocks = 0;  // of a state; 0: there are none
  std::shared_ptr<DeviceLoraTables> lora;
  kernels::cuda::LoraSizes output_sizes;
  at::Tensor tokens, positions;
  std::vector<int64_t> inputs;  // [1 + axes, bounds.tokens]

  void set_inputs(const at::Tensor& tokens, const at::Tensor& positions);
  // Adds the tables but the blocks, which are to follow `blocks` others.
  AddedStates add_states(std::span<const QuerySpan> spans, std::span<const StateSpan> state_spans,
                         size_t blocks);
};

StepTables::StepTables(const KvArena& arena, const StateArena* states, int64_t heads, int axes,
                       const StepBounds& bounds, std::shared_ptr<DeviceTables> memory)
    : tables_(std::make_unique<Tables>(Tables{
          bounds, arena.data().device(), std::move(memory), {}, {}, 0, {}, {}, {}, {}, {}})) {
  Tables& t = *tables_;
  if (states) {
    t.state_blocks = states->blocks();
    t.states.on_device = std::make_shared<DeviceStateTables>();
  }
  t.memory->reserve(most_bytes(t.state_blocks));
  t.inputs.assign(static_cast<size_t>(1 + axes) * static_cast<size_t>(bounds.tokens), 0);
  auto spans = std::make_shared<DeviceSpanTables>();
  spans->shape = attention_shape(arena, heads, true);
  spans->sizes =
      kernels::cuda::bounded_attention_sizes(spans->shape, attention_bounds(spans->shape, bounds));
  spans->workspace = attention_workspace(spans->shape, spans->sizes, t.device);
  if (const size_t bytes = prompt_workspace_bytes(spans->shape, spans->sizes))
    spans->prompt_parts = t.memory->scratch(bytes, t.device);
  t.spans.on_device = std::move(spans);
  if (bounds.lora_layers > 0 || bounds.output_layers > 0)
    t.lora = std::make_shared<DeviceLoraTables>();
  if (bounds.lora_layers > 0) {
    t.lora->sizes = kernels::cuda::bounded_lora_sizes(
        lora_bounds(bounds, bounds.lora_layers, bounds.lora_tile));
    t.lora->max_rank = bounds.max_rank;
  }
  if (bounds.output_layers > 0) {
    t.output_sizes = kernels::cuda::bounded_lora_sizes(
        lora_bounds(bounds, bounds.output_layers, kernels::cuda::kWideLoraTile));
    t.lora->output_tiles = t.output_sizes.expand_tiles;
  }
  const at::Tensor none = at::empty({0}, at::kLong);
  set(none, none.view({axes, 0}), {}, {}, {});
  const at::Tensor inputs =
      t.memory->memory()
          .narrow(0, 0, static_cast<int64_t>(t.inputs.size() * sizeof(int64_t)))
          .view(at::kLong)
          .view({1 + axes, bounds.tokens});
  t.tokens = inputs[0];
  t.positions = inputs.narrow(0, 1, axes);
}

StepTables::~StepTables() = default;

void StepTables::Tables::set_inputs(const at::Tensor& tokens, const at::Tensor& positions) {
  std::ranges::fill(inputs, 0);
  for (int64_t axis = -1; axis < positions.size(0); ++axis) {
    const at::Tensor row = axis < 0 ? tokens : positions[axis];
    std::copy_n(row.const_data_ptr<int64_t>(), row.numel(),
                inputs.begin() + (axis + 1) * bounds.tokens);
  }
}

AddedStates StepTables::Tables::add_states(std::span<const QuerySpan> spans,
                                           std::span<const StateSpan> state_spans, size_t blocks) {
  AddedStates added;
  if (state_blocks == 0) return added;
  TORCH_CHECK(spans.size() == state_spans.size(), "a step with ", state_spans.size(), " states of ",
              spans.size(), " sequences");
  added.plan =
      kernels::cuda::plan_states(spans.data(), state_spans.data(), spans.size(), bounds.tokens,
                                 state_blocks, static_cast<int32_t>(blocks));
  added.plan.spans.resize(static_cast<size_t>(bounds.spans()));
  added.offsets = add_tables(added.plan, *memory);
  return added;
}

void StepTables::set(const at::Tensor& tokens, const at::Tensor& positions,
                     std::span<const QuerySpan> spans, std::span<const StateSpan> state_spans,
                     const LoraBatch& lora) {
  Tables& t = *tables_;
  t.set_inputs(tokens, positions);
  DeviceTables& memory = *t.memory;
  memory.clear();
  memory.add(t.inputs);
  DeviceSpanTables& attention = *t.spans.on_device;
  auto span_plan = kernels::cuda::plan_bounded_attention(attention.shape, attention.sizes,
                                                         spans.data(), spans.size());
  TORCH_CHECK(span_plan, "a step beyond the bounds of its tables");
  SpanOffsets span_offsets = add_fixed_tables(*span_plan, attention.shape.kv_heads, memory);
  std::vector<int32_t>& blocks = span_plan->block_tables;
  const AddedStates states = t.add_states(spans, state_spans, blocks.size());
  blocks.insert(blocks.end(), states.plan.blocks.begin(), states.plan.blocks.end());
  LoraOffsets lora_offsets{};
  OutputOffsets output_offsets{};
  if (t.bounds.lora_layers > 0) {
    const bool wide = t.lora->sizes.tile_tokens == kernels::cuda::kWideLoraTile;
    kernels::cuda::LoraPlan plan = plan_of(lora, t.device, t.bounds.tokens, wide);
    TORCH_CHECK(kernels::cuda::bound_lora_plan(t.lora->sizes, plan),
                "adapters of a step beyond the bounds of its tables");
    lora_offsets = add_tables(plan, memory);
  }
  if (t.bounds.output_layers > 0) {
    OutputPlan plan = plan_outputs(lora, t.device);
    TORCH_CHECK(kernels::cuda::bound_lora_plan(t.output_sizes, plan.ranges),
                "output changes of a step beyond the bounds of its tables");
    plan.segments.resize(plan.ranges.segments.size());
    output_offsets = add_tables(plan, memory);
  }
  // Last, so that only this step's blocks are copied, not as many as its bounds allow.
  span_offsets.block_tables = memory.add(blocks);
  TORCH_CHECK(memory.bytes() <= most_bytes(t.state_blocks), "tables of ", memory.bytes(),
              " bytes of a step");
  memory.copy_to(t.device);
  attention.tables = tables_at(span_offsets, memory);
  if (attention.prompt_parts.defined())
    attention.tables.prompt_parts = attention.prompt_parts.data_ptr();
  if (t.state_blocks > 0)
    t.states.on_device->tables =
        tables_at(states.offsets, span_offsets.block_tables, states.plan, memory);
  if (t.bounds.lora_layers > 0) t.lora->tables = tables_at(lora_offsets, memory);
  if (t.bounds.output_layers > 0) t.lora->outputs = tables_at(output_offsets, memory);
}

const at::Tensor& StepTables::tokens() const { return tables_->tokens; }
const at::Tensor& StepTables::positions() const { return tables_->positions; }
const SpanTables& StepTables::spans() const { return tables_->spans; }
const StateSpanTables& StepTables::states() const { return tables_->states; }
std::shared_ptr<const DeviceLoraTables> StepTables::lora() const { return tables_->lora; }

}  // namespace valora::ops
