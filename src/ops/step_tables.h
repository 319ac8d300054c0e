// The inputs and tables of steps at fixed addresses of a GPU, so that a captured graph of launches
// can be replayed with them.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>
#include <span>

#include "ops/attention.h"
#include "ops/device_tables.h"
#include "ops/lora.h"
#include "ops/step_bounds.h"

namespace valora::ops {

// Whether the kernels in use run steps with this cache by launches that can be captured. heads:
// query heads.
bool steps_can_be_captured(const KvArena& arena, int64_t heads);
// The bounds of a step with this cache; absent if there are none. visual: some of its tokens have
// visual embeddings.
std::optional<StepBounds> step_bounds(const KvArena& arena, int64_t heads,
                                      std::span<const QuerySpan> spans, const LoraBatch& lora,
                                      bool visual);

class StepTables {
 public:
  // axes: of positions. memory: of all tables of steps that run one at a time, used by nothing
  // else. Throws c10::Error if memory is exhausted.
  StepTables(const KvArena& arena, int64_t heads, int axes, const StepBounds& bounds,
             std::shared_ptr<DeviceTables> memory);
  ~StepTables();

  // Begins a copy of a step within the bounds to the device, after which launches read it. tokens:
  // int64 [T] and positions: int64 [axes, T] on the host, T: at most bounds.tokens. The step before
  // must have ended. Launches of other tokens than these T change nothing that lasts.
  void set(const at::Tensor& tokens, const at::Tensor& positions, std::span<const QuerySpan> spans,
           const LoraBatch& lora);

  const at::Tensor& tokens() const;     // int64 [bounds.tokens]
  const at::Tensor& positions() const;  // int64 [axes, bounds.tokens]
  const SpanTables& spans() const;
  std::shared_ptr<const DeviceLoraTables> lora() const;  // null without adapters

 private:
  struct Tables;
  std::unique_ptr<Tables> tables_;
};

}  // namespace valora::ops
