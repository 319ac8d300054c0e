// Low-rank products of many adapters at once: y += scale · coefficient · (x Aᵀ) Bᵀ per segment
// (Punica's SGMV, S-LoRA §5, VaLoRA §4.3), in two launches. Shrink computes low = x Aᵀ in fp32;
// expand computes y += low Bᵀ, rounding each element once even if several segments cover a token.
// The expand of a gated product's two linears can also apply the activation. All sums are taken in
// a fixed order.
#pragma once

#include <vector>

#include "kernels/cuda/types.h"
#include "kernels/tiles/cuda_tile.h"
#include "kernels/types/forms.h"

namespace valora::kernels::cuda {

inline constexpr int kMaxLoraSlices = 3;
// Tokens per tile. The wide tile, for long segments, reads each factor half as often.
inline constexpr int32_t kNarrowLoraTile = 16, kWideLoraTile = 32;

// A factor [n, k], row-major: contiguous at `data` or, if `pieces` is set, in pieces of
// rows_per_piece whole rows each, of which the last may be shorter. `data` and all pieces are
// 16-byte aligned.
struct DeviceLoraFactor {
  const void* data = nullptr;
  const void* const* pieces = nullptr;
  int32_t rows_per_piece = 0;
};

// An adapter on one linear, in the dtype of the model's weights.
struct DeviceLoraModule {
  DeviceLoraFactor a;  // [rank, in]
  DeviceLoraFactor b;  // [out, rank]
  int32_t rank = 0;    // 1 to 256; 0: the adapter does not touch this linear
  int32_t in = 0, out = 0;
  float scale = 1;
};

// Applies an adapter to tokens [token_begin, token_end). modules: one entry per module of the
// model. Segments may overlap.
struct DeviceLoraSegment {
  int32_t token_begin = 0, token_end = 0;
  int32_t first_row = 0;  // workspace row of the segment's first token; set by plan_lora()
  float coefficient = 1;
  const DeviceLoraModule* modules = nullptr;
};

// Consecutive tokens of one segment. tokens 0: unused.
struct LoraShrinkTile {
  int32_t segment = 0, token_begin = 0, tokens = 0;
};

// Consecutive tokens covered by the same segments, listed in ascending order from
// covers[first_cover]. covers 0: no segment covers them.
struct LoraExpandTile {
  int32_t token_begin = 0, tokens = 0, first_cover = 0, covers = 0;
};

// Bounds of a step known to the host. A captured graph can be replayed with other tables that fit;
// unused tiles have no tokens.
struct LoraSizes {
  int32_t shrink_tiles = 0, expand_tiles = 0;
  int32_t rows = 0;                       // workspace rows: tokens summed over all segments
  int32_t tile_tokens = kNarrowLoraTile;  // most tokens per tile
  // Expand tiles including those that no segment covers, which come last. All of a step's `tokens`
  // are in one of them, unless tokens is 0.
  int32_t all_tiles = 0, tokens = 0;
};

// The tables of a step on the host, used by all projections of all layers.
struct LoraPlan {
  LoraSizes sizes;
  std::vector<DeviceLoraSegment> segments;
  std::vector<LoraShrinkTile> shrink_tiles;
  std::vector<LoraExpandTile> expand_tiles;
  std::vector<int32_t> covers;
};
// wide: use wide tiles even if no segment is long. tokens: of the step, for the tiles that no
// segment covers; 0: there are none.
LoraPlan plan_lora(const DeviceLoraSegment* segments, size_t count, bool wide = false,
                   int32_t tokens = 0);

// For captured graphs: the bounds of a set of steps.
struct LoraBounds {
  int32_t tokens = 0;
  int32_t rows = 0;      // tokens summed over all segments
  int32_t segments = 0;  // segments with tokens
  int32_t ranges = 0;    // ranges of tokens covered by the same segments
  int32_t tile_tokens = kNarrowLoraTile;
};
LoraSizes bounded_lora_sizes(const LoraBounds& bounds);
// True if the plan fits the bounds; its tables then get sizes that depend only on the bounds. A
// plan with tokens must have those of the bounds.
bool bound_lora_plan(const LoraSizes& bounds, LoraPlan& plan);

// The device copies of a plan's tables.
struct LoraTables {
  const DeviceLoraSegment* segments = nullptr;
  const LoraShrinkTile* shrink_tiles = nullptr;
  const LoraExpandTile* expand_tiles = nullptr;
  const int32_t* covers = nullptr;
};

// One linear with result y[tokens, out]. Strides are in elements.
struct LoraSlice {
  void* y = nullptr;
  int64_t y_stride = 0;
  int32_t out = 0;
  int32_t module = -1;  // index in the module tables; -1: cannot have adapters
  // [tokens, out], contiguous: y before rounding. Where an adapter applies, the products are added
  // to these sums and y is rounded once. Null: the products are added to y.
  const float* sums = nullptr;
};

// Up to kMaxLoraSlices linears with the same input x[tokens, in].
struct LoraCall {
  Dtype dtype = Dtype::kBf16;
  const void* x = nullptr;
  int64_t x_stride = 0;
  int32_t in = 0;
  LoraSlice slices[kMaxLoraSlices];
  int32_t slice_count = 0;
  int32_t max_rank = 0;  // at least the rank of any segment on these slices
  LoraSizes sizes;
  LoraTables tables;
};

// Where the expand of two linears, gate and up, writes activation(gate) · up.
struct LoraGate {
  void* out = nullptr;  // [tokens, the slices' out], contiguous
  Gate activation = Gate::kSilu;
};

// How the work is tiled. Any values give correct results, but both launches must use the same.
struct LoraTiles {
  CudaTile shrink, expand;
};
// Chosen by the shapes of the launches (VaLoRA §4.3, Alg. 2). choose: maps a shape to a tile, e.g.
// by a table of measurements.
LoraTiles choose_lora_tiles(const LoraCall& call, CudaArch arch,
                            CudaTile (*choose)(const ProductShape&) = cuda_formula_tile);

// The workspace must be 16-byte aligned and must not overlap x, y or the tables.
size_t lora_workspace_bytes(const LoraCall& call, const LoraTiles& tiles);

Status lora_shrink(const LoraCall& call, const LoraTiles& tiles, void* workspace, Stream stream);
Status lora_expand(const LoraCall& call, const LoraTiles& tiles, const void* workspace,
                   Stream stream);
// An expand of slices 0 (gate) and 1 (up), of equal `out`, followed by gate_mul() (elementwise.h),
// in one launch and with the same results, for all tokens of the plan. y stays as it is.
Status lora_expand_gated(const LoraCall& call, const LoraGate& gate, const LoraTiles& tiles,
                         const void* workspace, Stream stream);
// Shrink and expand.
Status lora_project(const LoraCall& call, const LoraTiles& tiles, void* workspace, Stream stream);

}  // namespace valora::kernels::cuda
