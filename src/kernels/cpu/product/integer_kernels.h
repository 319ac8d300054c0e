// The loops of products with integer weights, written over the Vectors of product_kernels.h, which
// must also provide:
//
//   kIntegerInputs          inputs per multiply_add: 2 with pairs of bf16, otherwise 1
//   integers<BITS, I>(chunk)
//                           the integers of 16 outputs for the I-th multiply_add of a chunk
//   kIntegerOffset<BITS>    integers() returns value + kIntegerOffset
//   broadcast(c), add_product(sums, a, b)
//                           c in all 16 lanes; sums += a · b
//   store_decoded(p, w, zeros, scales, minimums)
//                           stores (w - zeros) · scales + minimums, rounded to Element, in the form
//                           that weights<0>(p) of an ordinary product reads
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/cpu/product/integer_product.h"
#include "kernels/types/packed.h"

namespace valora::kernels {
namespace {

// The source of a tile's integers: panels of BITS bits.
template <typename V, int BITS>
struct IntegerSource {
  static constexpr int64_t kChunkBytes = kChunkInputs * kPanelOutputs * Packed<BITS>::kBits / 8;
  // Of a tile, if rows fill several. Bytes take longer to decode than rows to read: twice as many
  // rows share them.
  static constexpr int64_t kPanels = Packed<BITS>::kBits == 4 ? 2 : 1;
  template <int I>
  static inline __attribute__((always_inline)) typename V::Weights weights(const uint8_t* chunk) {
    return V::template integers<BITS, I>(chunk);
  }
};

// The difference between decoded values and the integers.
template <typename V>
inline constexpr PerBits<int> kIntegerOffsets =
    per_bits<int>([](auto bits) { return V::template kIntegerOffset<bits>; });

inline constexpr int kMostIntegerRows = 12;
// A tile keeps sums of a group and totals in registers.
template <typename V>
inline constexpr int kIntegerSums = V::kTileSums >= 24 ? V::kTileSums / 2 : V::kTileSums;
// With more rows, integers are decoded once for all rows.
template <typename V>
inline constexpr int64_t kRegisterRows =
    V::kTileSums >= 24 ? 4 * kMostIntegerRows : 2 * V::kTileSums;
inline constexpr int64_t kMostFetchingBlocks = 4;
// The most panels per tile, for a tile of this many sums: with few, the weights of four panels
// leave no registers for them.
constexpr int most_panels(int sums) { return sums >= 8 ? 4 : std::min(sums, 2); }

struct IntegerPlace {
  int64_t row, panel;
  const uint8_t* chunks[kIntegerPanels];
  const uint8_t* next[kIntegerPanels];  // the panels after these; next[0] is null: none to fetch
  int64_t fetch_at, fetch_step;         // bytes of `next`: where to begin, and how many per chunk
  bool near;                            // PanelFetch fetches these panels, too
};

// Keeps the compiler from computing each row's address from the first row's, for which it takes
// more registers than there are.
template <typename T>
inline __attribute__((always_inline)) const T* opaque(const T* p) {
  asm("" : "+r"(p));
  return p;
}

// The prefetching of a tile. Far: a part of the next panels per chunk, into L2. Near, for few rows
// (fetches_near()): the tile's own panels kAhead bytes further on, into L1, and at their
// end the next ones.
template <int PANELS, int64_t CHUNK_BYTES>
class PanelFetch {
 public:
  PanelFetch(const IntegerOutputs& p, const IntegerPlace& place)
      : near_(place.near),
        active_(near_ || place.next[0]),
        at_(near_ ? kAhead : place.fetch_at),
        step_(near_ ? CHUNK_BYTES : place.fetch_step),
        end_(chunks_of(p.w) * CHUNK_BYTES),
        groups_(near_ ? (p.w.k + p.w.group - 1) / p.w.group : 0),  // a division per tile
        scales_at_(p.w.scales_at),
        scale_bytes_(kPanelOutputs * (p.w.float_scales ? 4 : 2)),
        own_(place.chunks),
        next_(place.next[0] ? place.next : place.chunks) {
    for (int j = 0; j < PANELS; ++j) panels_[j] = near_ ? own_[j] : next_[j];
  }
  template <int CHUNKS = 1>
  inline __attribute__((always_inline)) void fetch_chunks() {
    if (!active_) return;
    if (!near_) return fetch_lines<CHUNKS, 2>();
    if (at_ >= end_) {
      at_ -= end_;
      end_ = INT64_MAX;
      for (int j = 0; j < PANELS; ++j) panels_[j] = next_[j];
    }
    fetch_lines<CHUNKS, 3>();
  }
  inline __attribute__((always_inline)) void fetch_scales(int64_t group) {
    if (!active_) return;
    const uint8_t* const* panels = next_;
    if (near_) {
      group += std::min(kGroupsAhead, groups_);
      if (group < groups_)
        panels = own_;
      else
        group -= groups_;
    }
    for (int j = 0; j < PANELS; ++j)
      __builtin_prefetch(panels[j] + scales_at_ + group * scale_bytes_, 0, 2);
  }

 private:
  // Of 1, 2, 4 and 6 KiB the fastest on a Sapphire Rapids.
  static constexpr int64_t kAhead = 2048, kGroupsAhead = 16;
  static constexpr int64_t kLine = 64;

  template <int CHUNKS, int LOCALITY>
  inline __attribute__((always_inline)) void fetch_lines() {
#pragma GCC unroll 4
    for (int c = 0; c < CHUNKS; ++c) {
#pragma GCC unroll 4
      for (int j = 0; j < PANELS; ++j) {
        __builtin_prefetch(panels_[j] + at_, 0, LOCALITY);
        if (CHUNK_BYTES > kLine && step_ > kLine)
          __builtin_prefetch(panels_[j] + at_ + kLine, 0, LOCALITY);
      }
      at_ += step_;
    }
  }

  bool near_, active_;
  int64_t at_, step_, end_, groups_, scales_at_, scale_bytes_;
  const uint8_t* const* own_;
  const uint8_t* const* next_;
  const uint8_t* panels_[PANELS];
};

template <typename V, typename S, int CHAINS, int ROWS, int PANELS, int... I>
inline __attribute__((always_inline)) void multiply_chunk(
    typename V::Sums (&sums)[ROWS][CHAINS * PANELS], const uint8_t* const (&chunks)[PANELS],
    int64_t offset, const typename V::Element* const (&rows)[ROWS], int64_t input,
    std::integer_sequence<int, I...>) {
  const auto step =
      [&]<int STEP>(std::integral_constant<int, STEP>) __attribute__((always_inline)) {
        typename V::Weights w[PANELS];
#pragma GCC unroll 4
        for (int j = 0; j < PANELS; ++j) w[j] = S::template weights<STEP>(chunks[j] + offset);
#pragma GCC unroll 16
        for (int i = 0; i < ROWS; ++i) {
          const auto value = V::template value<0>(rows[i] + input + STEP * V::kIntegerInputs);
#pragma GCC unroll 4
          for (int j = 0; j < PANELS; ++j)
            V::multiply_add(sums[i][STEP % CHAINS * PANELS + j], value, w[j]);
        }
      };
  (step(std::integral_constant<int, I>()), ...);
}

// BF16: it is known that no scales are fp32.
template <typename V, bool BF16 = false>
inline __attribute__((always_inline)) typename V::Sums group_scales(const IntegerOutputs& p,
                                                                    int64_t panel, int64_t group) {
  const uint8_t* scales = p.w.data + panel * p.w.panel_bytes + p.w.scales_at;
  const int64_t at = group * kPanelOutputs;
  return !BF16 && p.w.float_scales
             ? V::load(reinterpret_cast<const float*>(scales) + at, kPanelOutputs)
             : V::load(reinterpret_cast<const bf16*>(scales) + at, kPanelOutputs);
}

// A group's zero-points, relative to the values that the kernel decodes.
template <typename V>
inline __attribute__((always_inline)) typename V::Sums group_zeros(const IntegerOutputs& p,
                                                                   int64_t panel, int64_t group,
                                                                   int offset) {
  const uint8_t* zeros = p.w.data + panel * p.w.panel_bytes + p.w.zeros_at + group * kPanelOutputs;
  float wide[kPanelOutputs];
  for (int64_t j = 0; j < kPanelOutputs; ++j)
    wide[j] = static_cast<float>(static_cast<int>(zeros[j]) + offset);
  return V::load(wide, kPanelOutputs);
}

template <typename V>
inline __attribute__((always_inline)) typename V::Sums group_minimums(const IntegerOutputs& p,
                                                                      int64_t panel,
                                                                      int64_t group) {
  const uint8_t* minimums = p.w.data + panel * p.w.panel_bytes + p.w.zeros_at;
  return V::load(reinterpret_cast<const float*>(minimums) + group * kPanelOutputs, kPanelOutputs);
}

// A group with all inputs ends only where the inputs end.
inline int64_t group_chunks_of(const IntegerOutputs& p) {
  return p.w.group < p.w.k ? p.w.group / kChunkInputs : p.w.k / kChunkInputs + 1;
}

// totals += scale · (sums - zero · sum of the inputs) + minimum · sum of the inputs.
template <typename V, int ROWS, int PANELS>
inline __attribute__((always_inline)) void add_group(const IntegerProduct& p,
                                                     const IntegerPlace& place, int64_t group,
                                                     typename V::Sums (&sums)[ROWS][PANELS],
                                                     typename V::Sums (&totals)[ROWS][PANELS]) {
  const int offset = kIntegerOffsets<V>[p.w.bits];
  const int middle = usual_zero(p.w) + offset;
  const float* inputs = p.group_sums ? p.group_sums + place.row * p.ldg + group : nullptr;
  if (inputs && (p.w.zeros || middle != 0)) {
#pragma GCC unroll 4
    for (int j = 0; j < PANELS; ++j) {
      const typename V::Sums zeros = p.w.zeros ? group_zeros<V>(p, place.panel + j, group, offset)
                                               : V::broadcast(static_cast<float>(middle));
#pragma GCC unroll 16
      for (int i = 0; i < ROWS; ++i)
        sums[i][j] = V::scale_add(-inputs[i * p.ldg], zeros, sums[i][j]);
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < PANELS; ++j) {
    const typename V::Sums scales = group_scales<V>(p, place.panel + j, group);
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i) V::add_product(totals[i][j], scales, sums[i][j]);
  }
  if (!inputs || !p.w.minimums) return;
#pragma GCC unroll 4
  for (int j = 0; j < PANELS; ++j) {
    const typename V::Sums minimums = group_minimums<V>(p, place.panel + j, group);
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i)
      totals[i][j] = V::scale_add(inputs[i * p.ldg], minimums, totals[i][j]);
  }
}

template <typename V, int ROWS, int PANELS>
inline __attribute__((always_inline)) void store_totals(const IntegerOutputs& p,
                                                        const IntegerPlace& place,
                                                        typename V::Sums (&totals)[ROWS][PANELS]) {
#pragma GCC unroll 4
  for (int j = 0; j < PANELS; ++j) {
    const int64_t output = (place.panel + j) * kPanelOutputs,
                  count = std::min(kPanelOutputs, p.w.n - output);
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i) {
      float* y = p.y + (place.row + i) * p.ldy + output - p.first_output;
      typename V::Sums sum = totals[i][j];
      if (p.bias) sum = V::add(sum, V::load(p.bias + output, count));
      V::store(y, count, sum);
    }
  }
}

template <typename V, typename S, int ROWS, int PANELS>
void integer_tile(const IntegerProduct& p, const IntegerPlace& place) {
  using T = typename V::Element;
  constexpr int kChains = 4 * ROWS * PANELS <= V::kTileSums ? 2 : 1;
  constexpr auto kSteps =
      std::make_integer_sequence<int, static_cast<int>(kChunkInputs) / V::kIntegerInputs>();
  const int64_t all = chunks_of(p.w), group_chunks = group_chunks_of(p);
  const T* rows[ROWS];
  for (int i = 0; i < ROWS; ++i)
    rows[i] = opaque(static_cast<const T*>(p.x) + (place.row + i) * p.ldx);
  typename V::Sums totals[ROWS][PANELS];
#pragma GCC unroll 16
  for (int i = 0; i < ROWS; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < PANELS; ++j) totals[i][j] = V::zero();
  const uint8_t* chunks[PANELS];
  for (int j = 0; j < PANELS; ++j) chunks[j] = place.chunks[j];
  PanelFetch<PANELS, S::kChunkBytes> fetch(p, place);
  for (int64_t c = 0, group = 0; c < all; ++group) {
    const int64_t end = std::min(all, (group + 1) * group_chunks);
    typename V::Sums sums[ROWS][PANELS * kChains];
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i)
#pragma GCC unroll 8
      for (int j = 0; j < PANELS * kChains; ++j) sums[i][j] = V::zero();
    fetch.fetch_scales(group);
    for (; c < end; ++c) {
      fetch.fetch_chunks();
      multiply_chunk<V, S, kChains>(sums, chunks, c * S::kChunkBytes, rows, c * kChunkInputs,
                                    kSteps);
    }
    if constexpr (kChains == 2) {
      typename V::Sums both[ROWS][PANELS];
#pragma GCC unroll 16
      for (int i = 0; i < ROWS; ++i)
#pragma GCC unroll 4
        for (int j = 0; j < PANELS; ++j) both[i][j] = V::add(sums[i][j], sums[i][j + PANELS]);
      add_group<V>(p, place, group, both, totals);
    } else {
      add_group<V>(p, place, group, sums, totals);
    }
  }
  store_totals<V>(p, place, totals);
}

template <typename V, typename S, int PANELS, size_t... R>
constexpr auto integer_tiles(std::index_sequence<R...>) {
  return std::array<void (*)(const IntegerProduct&, const IntegerPlace&), sizeof...(R)>{
      integer_tile<V, S, static_cast<int>(R) + 1, PANELS>...};
}

// Runs all rows, in blocks of nearly equal size, for groups of PANELS panels. tiles[r] has r + 1
// rows. near: as of IntegerPlace, if there is one block. Returns the first panel not processed.
template <int PANELS, typename Product, size_t ROWS>
int64_t run_tiles(const Product& p,
                  const std::array<void (*)(const Product&, const IntegerPlace&), ROWS>& tiles,
                  int64_t panel, bool near) {
  const int64_t blocks = (p.m + ROWS - 1) / ROWS, all = panels_of(p.w.n), chunks = chunks_of(p.w);
  // A few blocks share the fetching, so that memory is read all the time. More blocks have enough
  // time to compute.
  const int64_t fetching = blocks <= kMostFetchingBlocks ? blocks : 1,
                step = kPanelOutputs * bits_of(p.w.bits) / fetching;
  IntegerPlace place;
  place.fetch_step = step;
  place.near = near && blocks == 1;
  for (; panel + PANELS <= p.panel_end; panel += PANELS) {
    place.panel = panel;
    const bool more = panel + 2 * PANELS <= all;
    for (int j = 0; j < PANELS; ++j) {
      place.chunks[j] = p.w.data + (panel + j) * p.w.panel_bytes;
      place.next[j] = more ? p.w.data + (panel + PANELS + j) * p.w.panel_bytes : nullptr;
    }
    for (int64_t b = 0; b < blocks; ++b) {
      if (b >= fetching) place.next[0] = nullptr;
      place.fetch_at = b * step * chunks;
      place.row = p.m * b / blocks;
      tiles[p.m * (b + 1) / blocks - place.row - 1](p, place);
    }
  }
  return panel;
}

// MOST: the most rows of p that it is called for.
template <typename V, typename S, int PANELS, int MOST = kMostIntegerRows>
int64_t integer_groups(const IntegerProduct& p, int64_t panel) {
  if constexpr (PANELS > most_panels(kIntegerSums<V>)) {
    return panel;
  } else {
    constexpr size_t kRows = std::min(MOST, kIntegerSums<V> / PANELS);
    static constexpr auto kTiles = integer_tiles<V, S, PANELS>(std::make_index_sequence<kRows>());
    return run_tiles<PANELS>(p, kTiles, panel, fetches_near(p.m, kIntegerSums<V>));
  }
}

// The widest tile that processes all rows at once, or else the one with the fewest reads.
template <typename V, typename S>
void multiply_from(const IntegerProduct& p) {
  constexpr int64_t kMany = V::kTileSums < 24 ? 1 : S::kPanels;
  const int64_t width = 4 * p.m <= kIntegerSums<V> ? 4 : 2 * p.m <= kIntegerSums<V> ? 2 : kMany;
  int64_t panel = p.panel_begin;
  if (width >= 4) panel = integer_groups<V, S, 4>(p, panel);
  if (width >= 2) panel = integer_groups<V, S, 2>(p, panel);
  integer_groups<V, S, 1>(p, panel);
}

// The same for at most ROWS rows.
template <typename V, typename S, int ROWS>
void multiply_few_from(const IntegerProduct& p) {
  static_assert(4 * ROWS <= kIntegerSums<V>);
  const int64_t panel =
      integer_groups<V, S, 2, ROWS>(p, integer_groups<V, S, 4, ROWS>(p, p.panel_begin));
  integer_groups<V, S, 1, ROWS>(p, panel);
}

template <typename V>
void multiply_integers_on(const IntegerProduct& p) {
  if (p.m <= 0) return;
  with_bits(p.w.bits, [&](auto bits) { multiply_from<V, IntegerSource<V, bits>>(p); });
}

// Terms to decode the weights of one group of a panel: w = (decoded - zeros) · scales + minimums.
template <typename V>
struct GroupTerms {
  typename V::Sums zeros, scales, minimums;
};
template <typename V>
inline __attribute__((always_inline)) GroupTerms<V> group_terms(const IntegerProduct& p,
                                                                int64_t panel, int64_t group) {
  const int offset = kIntegerOffsets<V>[p.w.bits];
  const auto middle = static_cast<float>(usual_zero(p.w) + offset);
  return {p.w.zeros ? group_zeros<V>(p, panel, group, offset) : V::broadcast(middle),
          group_scales<V>(p, panel, group),
          p.w.minimums ? group_minimums<V>(p, panel, group) : V::zero()};
}

template <typename V, typename S, int... I>
void decode_from(const IntegerProduct& p, const ChunkRange& range, typename V::Element* out,
                 std::integer_sequence<int, I...>) {
  const int64_t group_chunks = group_chunks_of(p);
  for (int64_t panel = p.panel_begin; panel < p.panel_end; ++panel) {
    const uint8_t* chunks = p.w.data + panel * p.w.panel_bytes;
    for (int64_t c = range.begin; c < range.end;) {
      const int64_t group = c / group_chunks, end = std::min(range.end, (group + 1) * group_chunks);
      const GroupTerms<V> terms = group_terms<V>(p, panel, group);
      for (; c < end; ++c) {
        __builtin_prefetch(chunks + (c + 16) * S::kChunkBytes, 0, 3);
        (V::store_decoded(out + I * V::kIntegerInputs * kPanelOutputs,
                          S::template weights<I>(chunks + c * S::kChunkBytes), terms.zeros,
                          terms.scales, terms.minimums),
         ...);
        out += kChunkInputs * kPanelOutputs;
      }
    }
  }
}

// Decodes p's panels to ordinary panels of these chunks' weights, [panel][chunk].
template <typename V>
void decode_integers_on(const IntegerProduct& p, const ChunkRange& range, void* decoded) {
  constexpr auto kSteps =
      std::make_integer_sequence<int, static_cast<int>(kChunkInputs) / V::kIntegerInputs>();
  auto* out = static_cast<typename V::Element*>(decoded);
  with_bits(p.w.bits,
            [&](auto bits) { decode_from<V, IntegerSource<V, bits>>(p, range, out, kSteps); });
}

}  // namespace
}  // namespace valora::kernels
