// The inputs and tables of decode steps at fixed addresses of a GPU, so that a captured graph of
// launches can be replayed with them.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "ops/attention.h"
#include "ops/lora.h"

namespace valora::ops {

// The bounds of a set of steps of one token per sequence.
struct DecodeBounds {
  int32_t tokens = 0;     // sequences
  int32_t longest = 0;    // tokens of a sequence, with its new one
  int32_t lora_rows = 0;  // tokens of all segments of adapters; 0: no adapters
  int32_t max_rank = 0;
  bool operator==(const DecodeBounds&) const = default;
};
// The smallest of a few sets of bounds that hold a step; absent if it is not of one token per
// sequence, or has too many of them.
std::optional<DecodeBounds> decode_bounds(std::span<const QuerySpan> spans, const LoraBatch& lora);

// Whether the kernels in use decode with this cache by launches that can be captured. heads: query
// heads.
bool decode_can_be_captured(const KvArena& arena, int64_t heads);

class DecodeTables {
 public:
  // axes: of positions. Throws c10::Error if memory is exhausted.
  DecodeTables(const KvArena& arena, int64_t heads, int axes, const DecodeBounds& bounds);
  ~DecodeTables();

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
