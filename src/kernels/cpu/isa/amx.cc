#ifdef __x86_64__

// AVX-512 with BF16 and AMX: one tdpbf16ps multiplies 16 rows of 32 inputs by the weights of 16
// outputs, which panels store as tile registers have them.
#include "kernels/cpu/isa/amx.h"
#include "kernels/cpu/isa/avx512.h"
#include "kernels/cpu/isa/isa_kernels.h"
#include "kernels/cpu/product/product_kernels.h"

namespace valora::kernels {
namespace {

constexpr int64_t kTileInputs = 32, kTileWeights = kTileInputs * kPanelOutputs;
constexpr int64_t kLine = 32;  // bf16 numbers

// Tile registers 0 to 3 have the sums of two tiles of rows by two panels, 4 and 5 the inputs of
// these rows, 6 and 7 the weights of these panels.
constexpr int kInputTiles = 4, kWeightTiles = 6;

// A block of rows: of its first and its second tile, which may be empty.
struct BlockRows {
  int64_t begin;
  int first, second;

  int all() const { return first + second; }
};

// The time of a product is that of its rows, so both tiles have as many, or nearly.
BlockRows block_of(int64_t begin, int64_t end) {
  const int rows = static_cast<int>(end - begin), first = rows <= kTileRows ? rows : (rows + 1) / 2;
  return {begin, first, rows - first};
}

void configure(const BlockRows& rows) {
  TileConfig config;
  const int second = std::max(1, rows.second);
  for (const int t : {0, 1, kInputTiles}) config.set(t, rows.first);
  for (const int t : {2, 3, kInputTiles + 1}) config.set(t, second);
  for (const int t : {kWeightTiles, kWeightTiles + 1}) config.set(t, kTileRows);
  configure_tiles(config);
}

// Memory of later panels, fetched into L2 during a block: `lines` of each per step.
template <int PANELS>
struct TileFetch {
  const bf16* at[PANELS] = {};
  int64_t lines = 0;

  void step() {
    for (int j = 0; j < PANELS; ++j) {
      for (int64_t l = 0; l < lines; ++l) __builtin_prefetch(at[j] + l * kLine, 0, 2);
      at[j] += lines * kLine;
    }
  }
};

// Adds the products of 32 inputs.
template <bool TWO_TILES, int PANELS>
inline __attribute__((always_inline)) void step_tiles(const bf16* first, const bf16* second,
                                                      int64_t stride,
                                                      const bf16* const (&weights)[PANELS],
                                                      int64_t offset) {
  load_tile<kWeightTiles>(weights[0] + offset, kTileRowBytes);
  load_tile<kInputTiles>(first, stride);
  multiply_bf16<0, kInputTiles, kWeightTiles>();
  if constexpr (PANELS == 2) {
    load_tile<kWeightTiles + 1>(weights[1] + offset, kTileRowBytes);
    multiply_bf16<1, kInputTiles, kWeightTiles + 1>();
  }
  if constexpr (TWO_TILES) {
    load_tile<kInputTiles + 1>(second, stride);
    multiply_bf16<2, kInputTiles + 1, kWeightTiles>();
    if constexpr (PANELS == 2) multiply_bf16<3, kInputTiles + 1, kWeightTiles + 1>();
  }
}

// Adds the products of the inputs from `begin` on, fewer than 32, padded with zeros.
template <bool TWO_TILES, int PANELS>
void step_last_tiles(const Product<bf16>& p, const BlockRows& rows, int64_t begin,
                     const bf16* const (&weights)[PANELS]) {
  alignas(64) bf16 inputs[2 * kTileRows][kTileInputs] = {}, padded[PANELS][kTileWeights] = {};
  const bf16* panels[PANELS];
  const int64_t rest = p.w.k - begin, vectors = (rest + 1) / 2;
  for (int i = 0; i < rows.all(); ++i)
    __builtin_memcpy(inputs[i], p.x + (rows.begin + i) * p.ldx + begin, rest * sizeof(bf16));
  for (int j = 0; j < PANELS; ++j) {
    __builtin_memcpy(padded[j], weights[j] + begin * kPanelOutputs,
                     vectors * 2 * kPanelOutputs * sizeof(bf16));
    panels[j] = padded[j];
  }
  step_tiles<TWO_TILES, PANELS>(inputs[0], inputs[rows.first], kTileRowBytes, panels, 0);
}

// The sums of a block of rows for PANELS panels.
template <bool TWO_TILES, int PANELS>
void multiply_block(const Product<bf16>& p, const BlockRows& rows, int64_t panel,
                    TileFetch<PANELS> fetch) {
  const bf16 *first = p.x + rows.begin * p.ldx, *second = first + rows.first * p.ldx;
  const bf16* weights[PANELS];
  for (int j = 0; j < PANELS; ++j) weights[j] = p.w.panel(panel + j);
  clear_tile<0>();
  clear_tile<1>();
  clear_tile<2>();
  clear_tile<3>();
  int64_t i = 0;
  for (; i + kTileInputs <= p.w.k; i += kTileInputs) {
    fetch.step();
    step_tiles<TWO_TILES, PANELS>(first + i, second + i, p.ldx * 2, weights, i * kPanelOutputs);
  }
  if (i < p.w.k) step_last_tiles<TWO_TILES, PANELS>(p, rows, i, weights);
  alignas(64) float sums[2 * kTileRows][2 * kPanelOutputs];
  constexpr int64_t kStride = sizeof sums[0];
  store_tile<0>(sums[0], kStride);
  if constexpr (PANELS == 2) store_tile<1>(sums[0] + kPanelOutputs, kStride);
  if constexpr (TWO_TILES) {
    store_tile<2>(sums[rows.first], kStride);
    if constexpr (PANELS == 2) store_tile<3>(sums[rows.first] + kPanelOutputs, kStride);
  }
  for (int r = 0; r < rows.all(); ++r)
    for (int j = 0; j < PANELS; ++j)
      apply_epilogue<Avx512Bf16>(p, rows.begin + r, panel + j,
                                 _mm512_load_ps(sums[r] + j * kPanelOutputs));
}

// What to fetch during block `block` of `blocks`: its share of the panels that follow, or of
// p.fetch.
template <int PANELS>
TileFetch<PANELS> fetch_during(const Product<bf16>& p, int64_t panel, int64_t block,
                               int64_t blocks) {
  TileFetch<PANELS> fetch;
  if (!p.fetch && panel + 2 * PANELS > panels_of(p.w.n)) return fetch;
  fetch.lines = std::max<int64_t>(1, kTileRows / blocks);
  for (int j = 0; j < PANELS; ++j) {
    fetch.at[j] = p.fetch ? p.fetch[panel + j] : p.w.panel(panel + PANELS + j);
    fetch.at[j] += block * fetch.lines * (p.w.k / kTileInputs) * kLine;
  }
  return fetch;
}

// Returns the first panel not processed.
template <int PANELS>
int64_t multiply_panels(const Product<bf16>& p, int64_t panel) {
  constexpr int64_t kBlock = 2 * kTileRows;
  const int64_t blocks = (p.m + kBlock - 1) / kBlock;
  for (; panel + PANELS <= p.panel_end; panel += PANELS)
    for (int64_t b = 0; b < blocks; ++b) {
      const BlockRows rows = block_of(p.m * b / blocks, p.m * (b + 1) / blocks);
      configure(rows);
      const TileFetch<PANELS> fetch = fetch_during<PANELS>(p, panel, b, blocks);
      if (rows.second > 0)
        multiply_block<true, PANELS>(p, rows, panel, fetch);
      else
        multiply_block<false, PANELS>(p, rows, panel, fetch);
    }
  return panel;
}

void multiply_amx(const Product<bf16>& p) {
  if (p.m <= kVectorRows) return multiply_avx512bf16(p);
  multiply_panels<1>(p, multiply_panels<2>(p, p.panel_begin));
  release_tiles();
}

}  // namespace

void add_amx(IsaKernels& kernels) {
  kernels.of_bf16.multiply = multiply_amx;
  kernels.of_bf16.integer_rows = kVectorRows + 1;  // measured with 4 bits
  kernels.bytes.multiply = multiply_bytes_amx;
}

}  // namespace valora::kernels

#endif
