// Low-rank products of many adapters in one launch: y += scale · coefficient · (x Aᵀ) Bᵀ per
// segment (Punica's SGMV, S-LoRA §5, VaLoRA §4.3). Two launches: shrink, low = x Aᵀ in fp32, and
// expand, y += low Bᵀ, rounded once per element even if several segments cover a token. All sums
// have a fixed order.
#pragma once

#include <vector>

#include "kernels/cuda/types.h"
#include "kernels/tiles/cuda_tile.h"

namespace valora::kernels::cuda {

inline constexpr int kMaxLoraSlices = 3;
// Tokens of a tile: the wide one reads a factor half as often, and is for long segments.
inline constexpr int32_t kNarrowLoraTile = 16, kWideLoraTile = 32;

// A factor [n, k], row-major: contiguous at `data`, or, if `pieces` is set, in pieces of
// rows_per_piece whole rows each, the last one perhaps shorter. `data` and all pieces are 16-byte
// aligned.
struct DeviceLoraFactor {
  const void* data = nullptr;
  const void* const* pieces = nullptr;
  int32_t rows_per_piece = 0;
};

// An adapter on one linear. In the dtype of the model's weights.
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
  int32_t first_row = 0;  // of the segment's tokens in the workspace; set by plan_lora
  float coefficient = 1;
  const DeviceLoraModule* modules = nullptr;
};

// Consecutive tokens of one segment. tokens 0: none.
struct LoraShrinkTile {
  int32_t segment = 0, token_begin = 0, tokens = 0;
};

// Consecutive tokens that the same segments cover: covers[first_cover …] in ascending order.
struct LoraExpandTile {
  int32_t token_begin = 0, tokens = 0, first_cover = 0, covers = 0;
};

// Host-known bounds of a step. A captured graph can be replayed with other tables as long as these
// hold; unused tiles have no tokens.
struct LoraSizes {
  int32_t shrink_tiles = 0, expand_tiles = 0;
  int32_t rows = 0;                       // of the workspace: tokens of all segments
  int32_t tile_tokens = kNarrowLoraTile;  // most tokens of a tile
};

// The tables of a step, on the host, for all projections of all layers.
struct LoraPlan {
  LoraSizes sizes;
  std::vector<DeviceLoraSegment> segments;
  std::vector<LoraShrinkTile> shrink_tiles;
  std::vector<LoraExpandTile> expand_tiles;
  std::vector<int32_t> covers;
};
// wide: in wide tiles although no segment is long.
LoraPlan plan_lora(const DeviceLoraSegment* segments, size_t count, bool wide = false);

// For captured graphs: the bounds of a set of steps.
struct LoraBounds {
  int32_t tokens = 0;
  int32_t rows = 0;      // tokens of all segments
  int32_t segments = 0;  // with tokens
  int32_t ranges = 0;    // of tokens that the same segments cover
  int32_t tile_tokens = kNarrowLoraTile;
};
LoraSizes bounded_lora_sizes(const LoraBounds& bounds);
// Whether a plan holds within the bounds; then its tables get sizes that depend on these alone.
bool bound_lora_plan(const LoraSizes& bounds, LoraPlan& plan);

// The device copies of a plan's tables.
struct LoraTables {
  const DeviceLoraSegment* segments = nullptr;
  const LoraShrinkTile* shrink_tiles = nullptr;
  const LoraExpandTile* expand_tiles = nullptr;
  const int32_t* covers = nullptr;
};

// One linear: y[tokens, out]. Strides in elements.
struct LoraSlice {
  void* y = nullptr;
  int64_t y_stride = 0;
  int32_t out = 0;
  int32_t module = -1;  // index in the tables of modules; -1: cannot have adapters
};

// Up to kMaxLoraSlices linears of the same input x[tokens, in].
struct LoraCall {
  Dtype dtype = Dtype::kBf16;
  const void* x = nullptr;
  int64_t x_stride = 0;
  int32_t in = 0;
  LoraSlice slices[kMaxLoraSlices];
  int32_t slice_count = 0;
  int32_t max_rank = 0;  // of all segments' modules in the slices, or above
  LoraSizes sizes;
  LoraTables tables;
};

// How the work is cut. Any values are correct, but both launches must have the same.
struct LoraTiles {
  CudaTile shrink, expand;
};
// By the shapes of the launches (VaLoRA §4.3, Alg. 2). choose: by a table of measurements, say.
LoraTiles choose_lora_tiles(const LoraCall& call, CudaArch arch,
                            CudaTile (*choose)(const ProductShape&) = cuda_formula_tile);

// 16-byte aligned; x, y and the tables must not overlap it.
size_t lora_workspace_bytes(const LoraCall& call, const LoraTiles& tiles);

Status lora_shrink(const LoraCall& call, const LoraTiles& tiles, void* workspace, Stream stream);
Status lora_expand(const LoraCall& call, const LoraTiles& tiles, const void* workspace,
                   Stream stream);
// Both.
Status lora_project(const LoraCall& call, const LoraTiles& tiles, void* workspace, Stream stream);

}  // namespace valora::kernels::cuda
