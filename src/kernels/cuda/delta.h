// The gated delta rule with the convolution before it and the gated norm after it (ops/
// gated_delta.h), and the states of sequences in the blocks of a pool. Computes in fp32 and rounds
// once after the convolution and once at the end. Equations: kernels/cpu/delta/gated_delta.h.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cuda/types.h"
#include "kernels/types/spans.h"
#include "kernels/types/state_layout.h"

namespace valora::kernels::cuda {

// A part of a state: `offset` bytes into the block with this index in the state's list.
struct StatePlace {
  int32_t block = 0;
  uint32_t offset = 0;  // a multiple of 64
};

// The states of one layer. places: [taps - 1 rows of the window, value_heads matrices].
struct StatePool {
  void* data = nullptr;  // 64-byte aligned
  int64_t block_bytes = 0;
  const StatePlace* places = nullptr;
};

// Rows [begin, begin + count) of a step, and the offsets of its states' block lists in the step's
// block table (StateSpan). -1: no such state.
struct DeviceStateSpan {
  int32_t begin = 0, count = 0;  // count 0: an unused entry, which reads and writes nothing
  int32_t from = -1, to = -1;
  int32_t kept[StateSpan::kMostKept] = {-1, -1};
  int32_t after[StateSpan::kMostKept] = {};  // rows that a kept state includes
};

// The tables of a step, on the host.
struct StatePlan {
  std::vector<DeviceStateSpan> spans;
  std::vector<int32_t> span_of;  // per token: its span; -1: none
  std::vector<int32_t> blocks;
};
// states: one per span, each list with `state_blocks` blocks. tokens: at least the end of every
// span. first_block: index in the table on the device at which `blocks` will begin.
StatePlan plan_states(const QuerySpan* spans, const StateSpan* states, size_t count, int64_t tokens,
                      int32_t state_blocks, int32_t first_block = 0);

// The device copies of a plan's tables.
struct StateTables {
  const DeviceStateSpan* spans = nullptr;
  const int32_t* span_of = nullptr;
  const int32_t* blocks = nullptr;
  int32_t span_count = 0, tokens = 0;
};

// out[t] = silu(Σ_j weights[j] · x[t - taps + 1 + j]) for the tokens of spans, where rows before a
// span's first come from the window of its state before the step, or are zeros; other rows of out
// are not written. Writes no state. x: [tokens, channels], weights: [taps, channels], out: [tokens,
// channels], contiguous.
Status short_conv(Dtype dtype, const StateShape& shape, const StatePool& states, TokenRows x,
                  const void* weights, void* out, const StateTables& tables, Stream stream);

struct DeltaRows {
  TokenRows x;                // [tokens, channels] before the convolution: the windows' inputs
  const void* qkv = nullptr;  // the same after it, contiguous
  TokenRows z;                // [tokens, value_heads · value_dim]
  TokenRows b, a;             // [tokens, value_heads]
  const float *rate = nullptr, *bias = nullptr;  // [value_heads]
  const void* norm = nullptr;                    // [value_dim]
  float eps = 1e-6f;
};

// Runs the rule over the rows of each span from its state before the step, and writes its states:
// matrices, and the windows of short_conv(), which must have been launched before. out: [tokens,
// value_heads · value_dim], contiguous; rows outside all spans are not written.
Status gated_delta(Dtype dtype, const StateShape& shape, const StatePool& states,
                   const DeltaRows& rows, void* out, const StateTables& tables, Stream stream);

}  // namespace valora::kernels::cuda
