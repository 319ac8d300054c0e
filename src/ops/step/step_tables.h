// The inputs and tables of steps at fixed GPU addresses, so that a captured graph can be replayed
// with new values.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>
#include <span>

#include "ops/attention/attention.h"
#include "ops/delta/state_arena.h"
#include "ops/lora/lora.h"
#include "ops/step/device_tables.h"
#include "ops/step/span_tables.h"
#include "ops/step/step_bounds.h"

namespace valora::ops {

// True if the current kernels can run steps with this cache in launches that can be captured.
// heads: query heads.
bool steps_can_be_captured(const KvArena& arena, int64_t heads);
// The bounds of a step with this cache; nullopt if none fit. embedded: embeddings of some of its
// tokens are not those of the model's table.
std::optional<StepBounds> step_bounds(const KvArena& arena, int64_t heads,
                                      std::span<const QuerySpan> spans, const LoraBatch& lora,
                                      bool embedded);

class StepTables {
 public:
  // states: null if sequences keep none besides their KV. axes: number of axes of positions.
  // memory: shared by the tables of all steps, which must run one at a time, and by nothing else.
  // Throws c10::Error if memory is exhausted.
  StepTables(const KvArena& arena, const StateArena* states, int64_t heads, int axes,
             const StepBounds& bounds, std::shared_ptr<DeviceTables> memory);
  ~StepTables();

  // Starts copying a step within the bounds to the device; launches that follow read it. tokens:
  // int64 [T] and positions: int64 [axes, T] on the host, with T at most bounds.tokens. The
  // previous step must have ended. state_spans: one per span, or none without states. Computation
  // for the surplus tokens has no lasting effect.
  void set(const at::Tensor& tokens, const at::Tensor& positions, std::span<const QuerySpan> spans,
           std::span<const StateSpan> state_spans, const LoraBatch& lora);

  const at::Tensor& tokens() const;     // int64 [bounds.tokens]
  const at::Tensor& positions() const;  // int64 [axes, bounds.tokens]
  const SpanTables& spans() const;
  const StateSpanTables& states() const;
  std::shared_ptr<const DeviceLoraTables> lora() const;  // null without adapters

 private:
  struct Tables;
  std::unique_ptr<Tables> tables_;
};

}  // namespace valora::ops
