#include "ops/delta/gated_delta_cuda.h"

#include "ops/delta/gated_delta_targets.h"
#include "ops/device/cuda_types.h"

namespace valora::ops {
namespace {

using kernels::cuda::StatePlace;
using kernels::cuda::StatePlan;

kernels::cuda::StatePool layer_of(const StateArena& states, int64_t layer) {
  static_assert(sizeof(StatePlace) == 2 * sizeof(int32_t));
  const at::Tensor& places = states.places();
  const auto* all = static_cast<const StatePlace*>(places.const_data_ptr());
  return {states.pool().block(0), static_cast<int64_t>(states.pool().block_bytes()),
          all + layer * places.size(1)};
}

std::shared_ptr<DeviceStateTables> make_tables(const StateArena& states,
                                               std::span<const kernels::QuerySpan> spans,
                                               std::span<const StateSpan> state_spans,
                                               const at::Tensor& rows) {
  const StatePlan plan = kernels::cuda::plan_states(spans.data(), state_spans.data(), spans.size(),
                                                    rows.size(0), states.blocks());
  auto tables = std::make_shared<DeviceStateTables>();
  const StateOffsets offsets = add_tables(plan, tables->memory);
  const size_t blocks = tables->memory.add(plan.blocks);
  tables->memory.copy_to(rows.device());
  tables->tables = tables_at(offsets, blocks, plan, tables->memory);
  return tables;
}

}  // namespace

StateOffsets add_tables(const StatePlan& plan, DeviceTables& memory) {
  StateOffsets offsets{};
  offsets.spans = memory.add(plan.spans);
  offsets.span_of = memory.add(plan.span_of);
  return offsets;
}

kernels::cuda::StateTables tables_at(const StateOffsets& offsets, size_t blocks,
                                     const StatePlan& plan, const DeviceTables& memory) {
  return {memory.at<kernels::cuda::DeviceStateSpan>(offsets.spans),
          memory.at<int32_t>(offsets.span_of), memory.at<int32_t>(blocks),
          static_cast<int32_t>(plan.spans.size()), static_cast<int32_t>(plan.span_of.size())};
}

at::Tensor gated_delta_cuda(const DeltaTokens& tokens, const DeltaWeights& weights,
                            const StateArena& states, int64_t layer,
                            std::span<const kernels::QuerySpan> spans,
                            std::span<const StateSpan> state_spans, StateSpanTables& tables) {
  if (!tables.on_device) tables.on_device = make_tables(states, spans, state_spans, tokens.qkv);
  const kernels::cuda::StateTables& step = tables.on_device->tables;
  const StateShape& s = states.shape();
  const auto dtype = cuda_dtype(tokens.qkv.scalar_type());
  const kernels::cuda::StatePool pool = layer_of(states, layer);
  kernels::cuda::Stream stream = stream_of(tokens.qkv);
  const at::Tensor qkv = at::empty({tokens.qkv.size(0), s.channels}, tokens.qkv.options()),
                   out = at::empty({tokens.qkv.size(0), s.value_heads * s.value_dim},
                                   tokens.qkv.options());
  check_launch(
      kernels::cuda::short_conv(dtype, s, pool, token_rows(tokens.qkv),
                                weights.conv.const_data_ptr(), qkv.data_ptr(), step, stream),
      "short_conv");
  const kernels::cuda::DeltaRows rows{token_rows(tokens.qkv),
                                      qkv.const_data_ptr(),
                                      token_rows(tokens.z),
                                      token_rows(tokens.b),
                                      token_rows(tokens.a),
                                      weights.rate.const_data_ptr<float>(),
                                      weights.bias.const_data_ptr<float>(),
                                      weights.norm.const_data_ptr(),
                                      static_cast<float>(weights.eps)};
  check_launch(kernels::cuda::gated_delta(dtype, s, pool, rows, out.data_ptr(), step, stream),
               "gated_delta");
  return out;
}

}  // namespace valora::ops
