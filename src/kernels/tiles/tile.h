// The tile of a product: the part that a CPU thread or a CUDA thread block computes at a time.
#pragma once

#include <cstdint>
#include <variant>

#include "kernels/tiles/shape.h"

namespace valora::kernels {

// The sums that a thread keeps in registers while it iterates over k.
struct CpuTile {
  uint8_t rows = 1;    // most rows of x per block; m is cut into blocks of even size
  uint8_t panels = 1;  // panels of 16 outputs: 1, 2, 4 or 8
  uint8_t chains = 1;  // independent partial sums per output: 1, 2, 4 or 8

  friend bool operator==(const CpuTile&, const CpuTile&) = default;
};

// The template parameters of a tensor-core GEMM in CUTLASS or CuTe. A thread block computes
// block_m × block_n outputs with warps_m × warps_n warps. It iterates over k in steps of block_k
// with a pipeline of `stages` buffers in shared memory (cp.async).
struct CudaTile {
  uint16_t block_m = 16;  // tokens: a multiple of 16 · warps_m
  uint16_t block_n = 16;  // outputs: a multiple of 8 · warps_n
  uint16_t block_k = 16;  // inputs: a multiple of 16
  uint8_t warps_m = 1;    // warps_m · warps_n <= 32
  uint8_t warps_n = 1;
  uint8_t stages = 2;   // 1: no double buffering
  uint8_t split_k = 1;  // thread blocks per output tile, each with a part of k; 1: no split

  friend bool operator==(const CudaTile&, const CudaTile&) = default;
};

using Tile = std::variant<CpuTile, CudaTile>;

inline constexpr int kMostTileRows = 12;
inline constexpr uint8_t kTilePanels[] = {1, 2, 4, 8};
inline constexpr uint8_t kTileChains[] = {1, 2, 4, 8};

// Sums of 16 outputs that the instruction set keeps in registers (kTileSums in
// cpu/isa/vectors_*.h).
int tile_sums(Isa isa);
// Most bytes of shared memory per thread block, and those that a tile needs with elements of
// `element` bytes.
int64_t shared_memory(CudaArch arch);
int64_t shared_memory(const CudaTile& tile, int64_t element);
// Whether the kernels of the processor support the tile. False for a tile of another device.
bool is_tile_of(Processor processor, bool float32, const Tile& tile);
// The tile that actually runs if `tile` is requested: rows after the split of m into even blocks,
// panels and chains limited to those of the product. Tiles with the same effect on a shape become
// equal.
CpuTile effective_tile(const ProductShape& shape, const CpuTile& tile);

}  // namespace valora::kernels
