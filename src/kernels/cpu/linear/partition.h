// How a launch of products is divided into pieces, and what it prefetches. Shared by the kernels
// and the tile profiler, which must measure what the kernels run.
#pragma once

#include <cstdint>

namespace valora::kernels {

// The most rows whose inputs and sums stay in L2.
inline constexpr int64_t kMaxRowsTogether = 126;
// Products of at most this many rows are memory-bound, so their weights are prefetched.
inline constexpr int64_t kFetchedRows = 16;
// The most panels of A (rank 256) for which the next shrink's panels are prefetched.
inline constexpr int64_t kMaxFetchedPanels = 16;
// Below this many multiply-adds, a second thread does not pay off.
inline constexpr int64_t kSerialProducts = 1 << 16;
// Below this many inputs, a second thread does not speed up their preparation.
inline constexpr int64_t kSerialInputs = 1 << 15;

// Panels per piece of the outputs if all rows run together: as few pieces as balance the load,
// because each piece costs time per segment. A multiple of `group`, the panels in the dense
// product's tile.
inline int64_t piece_panels(int64_t panels, int64_t group) {
  constexpr int64_t kPieces = 28, kMaxPanels = 64;
  int64_t piece = group;
  while (piece < kMaxPanels && panels / (2 * piece) >= (piece < 4 ? kPieces / 2 : kPieces))
    piece *= 2;
  return piece;
}

}  // namespace valora::kernels
