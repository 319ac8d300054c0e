#include <algorithm>
#include <bit>

#include "ops/attention_cuda.h"
#include "ops/cuda_types.h"
#include "ops/decode_tables.h"
#include "ops/dispatch.h"
#include "ops/lora_cuda.h"

namespace valora::ops {
namespace {

// Every set of bounds costs a captured graph, so there are few.
constexpr int32_t kTokens[] = {1, 2, 4, 8, 16, 24, 32, 48, 64};
constexpr int32_t kLeastLongest = 512, kLeastRank = 16;

int32_t power_above(int64_t value, int32_t least) {
  return std::max(least, static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(value))));
}

}  // namespace

std::optional<DecodeBounds> decode_bounds(std::span<const QuerySpan> spans, const LoraBatch& lora) {
  const auto tokens = std::ranges::lower_bound(kTokens, static_cast<int32_t>(spans.size()));
  if (spans.empty() || tokens == std::end(kTokens)) return std::nullopt;
  int64_t longest = 0, rows = 0, rank = 0;
  for (const QuerySpan& span : spans) {
    if (span.queries != 1) return std::nullopt;
    longest = std::max(longest, span.context + 1);
  }
  for (size_t i = 0; i < lora.segments().size(); ++i) {
    rows += lora.segments()[i].token_end - lora.segments()[i].token_begin;
    rank = std::max(rank, lora.adapter(i).max_rank());
  }
  DecodeBounds bounds{*tokens, power_above(longest, kLeastLongest), 0, 0};
  if (rank > 0) {
    bounds.lora_rows = power_above(std::max<int64_t>(rows, *tokens), 1);
    bounds.max_rank = power_above(rank, kLeastRank);
  }
  return bounds;
}

bool decode_can_be_captured(const KvArena& arena, int64_t heads) {
  return target_of(arena.data()) == Target::kCuda &&
         kernels::cuda::decode_fits(attention_shape(arena, heads, true));
}

struct DecodeTables::Tables {
  DecodeBounds bounds;
  DeviceTables memory;  // of all
  at::Device device;
  SpanTables spans;
  std::shared_ptr<DeviceLoraTables> lora;
  at::Tensor tokens, positions;
  std::vector<int64_t> inputs;  // [1 + axes, bounds.tokens]
};

DecodeTables::DecodeTables(const KvArena& arena, int64_t heads, int axes,
                           const DecodeBounds& bounds)
    : tables_(
          std::make_unique<Tables>(Tables{bounds, {}, arena.data().device(), {}, {}, {}, {}, {}})) {
  Tables& t = *tables_;
  t.inputs.assign(static_cast<size_t>((1 + axes) * bounds.tokens), 0);
  auto spans = std::make_shared<DeviceSpanTables>();
  spans->shape = attention_shape(arena, heads, true);
  spans->sizes = kernels::cuda::decode_sizes(spans->shape, bounds.tokens, bounds.longest);
  spans->workspace = attention_workspace(spans->shape, spans->sizes, t.device);
  t.spans.on_device = std::move(spans);
  if (bounds.lora_rows > 0) {
    t.lora = std::make_shared<DeviceLoraTables>();
    t.lora->sizes = kernels::cuda::bounded_lora_sizes(bounds.tokens, bounds.lora_rows);
    t.lora->max_rank = bounds.max_rank;
  }
  const at::Tensor none = at::empty({0}, at::kLong);
  set(none, none.view({axes, 0}), {}, {});
  const at::Tensor inputs =
      t.memory.memory()
          .narrow(0, 0, static_cast<int64_t>(t.inputs.size() * sizeof(int64_t)))
          .view(at::kLong)
          .view({1 + axes, bounds.tokens});
  t.tokens = inputs[0];
  t.positions = inputs.narrow(0, 1, axes);
}

DecodeTables::~DecodeTables() = default;

void DecodeTables::set(const at::Tensor& tokens, const at::Tensor& positions,
                       std::span<const QuerySpan> spans, const LoraBatch& lora) {
  Tables& t = *tables_;
  std::ranges::fill(t.inputs, 0);
  for (int64_t axis = -1; axis < positions.size(0); ++axis) {
    const at::Tensor row = axis < 0 ? tokens : positions[axis];
    std::copy_n(row.const_data_ptr<int64_t>(), row.numel(),
                t.inputs.begin() + (axis + 1) * t.bounds.tokens);
  }
  t.memory.clear();
  t.memory.add(t.inputs);
  DeviceSpanTables& attention = *t.spans.on_device;
  const kernels::cuda::AttentionPlan span_plan =
      kernels::cuda::plan_decode(attention.sizes, spans.data(), spans.size());
  SpanOffsets span_offsets = add_fixed_tables(span_plan, attention.shape.kv_heads, t.memory);
  LoraOffsets lora_offsets{};
  if (t.lora) {
    kernels::cuda::LoraPlan plan = plan_of(lora, t.device);
    TORCH_CHECK(kernels::cuda::bound_lora_plan(t.lora->sizes, plan),
                "a decode step beyond the bounds of its tables");
    lora_offsets = add_tables(plan, t.memory);
  }
  // Last, so that only the blocks of this step are copied, not all that its bounds allow.
  span_offsets.block_tables = t.memory.add(span_plan.block_tables);
  t.memory.reserve(span_offsets.block_tables +
                   kernels::cuda::decode_blocks(attention.sizes) * sizeof(int32_t));
  t.memory.copy_to(t.device);
  attention.tables = tables_at(span_offsets, t.memory);
  if (t.lora) t.lora->tables = tables_at(lora_offsets, t.memory);
}

const at::Tensor& DecodeTables::tokens() const { return tables_->tokens; }
const at::Tensor& DecodeTables::positions() const { return tables_->positions; }
const SpanTables& DecodeTables::spans() const { return tables_->spans; }
std::shared_ptr<const DeviceLoraTables> DecodeTables::lora() const { return tables_->lora; }

}  // namespace valora::ops
