// A product's tile: how much of it one thread or thread block computes at once, in terms of the
// device that runs it.
#pragma once

#include <cstdint>
#include <variant>

#include "kernels/tiles/shape.h"

namespace valora::kernels {

// Sums that a thread keeps in registers while it walks through the inputs.
struct CpuTile {
  uint8_t rows = 1;    // of x, at most: m rows are cut into even blocks of no more than these
  uint8_t panels = 1;  // of 16 outputs each: 1, 2, 4 or 8
  uint8_t chains =
      1;  // sums an output has, over every chains-th input, added at the end: 1, 2, 4 or 8

  friend bool operator==(const CpuTile&, const CpuTile&) = default;
};

// What a tensor-core GEMM of CUTLASS or CuTe is instantiated with. A thread block computes
// block_m × block_n outputs; its warps share them out as warps_m × warps_n, and it walks through k
// in steps of block_k, `stages` of which are in shared memory or on their way there (cp.async).
struct CudaTile {
  uint16_t block_m = 16;  // tokens: a multiple of 16 · warps_m
  uint16_t block_n = 16;  // outputs: a multiple of 8 · warps_n
  uint16_t block_k = 16;  // inputs: a multiple of 16
  uint8_t warps_m = 1;    // warps_m · warps_n <= 32
  uint8_t warps_n = 1;
  uint8_t stages = 2;  // 1: no double buffering
  uint8_t split_k =
      1;  // thread blocks that share the inputs of one output tile; sums are added after

  friend bool operator==(const CudaTile&, const CudaTile&) = default;
};

using Tile = std::variant<CpuTile, CudaTile>;

inline constexpr int kMostTileRows = 12;
inline constexpr uint8_t kTilePanels[] = {1, 2, 4, 8};
inline constexpr uint8_t kTileChains[] = {1, 2, 4, 8};

// Sums that the instruction set keeps in registers (kTileSums of cpu/isa/vectors_*.h).
int tile_sums(Isa isa);
// Bytes of shared memory that a thread block may take, and that a tile takes with inputs of
// `element` bytes.
int64_t shared_memory(CudaArch arch);
int64_t shared_memory(const CudaTile& tile, int64_t element);
// Whether the processor's kernels have it; a tile of another device is none of theirs.
bool is_tile_of(Processor processor, bool float32, const Tile& tile);
// The tile that runs where `tile` is asked for: rows as even blocks of m leave them, no panels or
// chains that the product has not. Tiles of one effect on a shape are equal after it.
CpuTile effective_tile(const ProductShape& shape, const CpuTile& tile);

}  // namespace valora::kernels
