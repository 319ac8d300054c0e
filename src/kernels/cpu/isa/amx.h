// The tile registers of AMX: eight of 16 rows of 64 bytes. The wrappers need no compiler flags.
#pragma once

#include <cstdint>

namespace valora::kernels {
namespace {

constexpr int kTileRows = 16;
constexpr int kTileRowBytes = 64;

// The operand of ldtilecfg.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  void set(int tile, int tile_rows, int bytes = kTileRowBytes) {
    rows[tile] = static_cast<uint8_t>(tile_rows);
    row_bytes[tile] = static_cast<uint16_t>(bytes);
  }
};

inline __attribute__((always_inline)) void configure_tiles(const TileConfig& config) {
  asm volatile("ldtilecfg %0" ::"m"(config));
}
// After the last use, so that the system need not save the registers any more.
inline __attribute__((always_inline)) void release_tiles() { asm volatile("tilerelease"); }
template <int TILE>
inline __attribute__((always_inline)) void clear_tile() {
  asm volatile("tilezero %%tmm%c0" ::"i"(TILE));
}
// stride: bytes per row.
template <int TILE>
inline __attribute__((always_inline)) void load_tile(const void* p, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(p), "r"(stride), "i"(TILE) : "memory");
}
template <int TILE>
inline __attribute__((always_inline)) void store_tile(void* p, int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(p), "r"(stride), "i"(TILE) : "memory");
}
// fp32 sums of products of pairs of bf16.
template <int SUMS, int INPUTS, int WEIGHTS>
inline __attribute__((always_inline)) void multiply_bf16() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(SUMS), "i"(INPUTS), "i"(WEIGHTS));
}
// 32-bit sums of products of four signed inputs by unsigned weights.
template <int SUMS, int INPUTS, int WEIGHTS>
inline __attribute__((always_inline)) void multiply_bytes() {
  asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(SUMS), "i"(INPUTS), "i"(WEIGHTS));
}

}  // namespace
}  // namespace valora::kernels
