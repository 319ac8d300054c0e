// The pieces that one launch of products is cut into, and what is fetched ahead in them: known to
// the launches and to the profiler of tiles, which must measure what runs.
#pragma once

#include <cstdint>

namespace valora::kernels {

inline constexpr int64_t kMaxRowsTogether =
    126;  // rows whose inputs and sums stay in the second-level cache
inline constexpr int64_t kFetchedRows =
    16;  // up to so many rows wait for their weights, told of early
inline constexpr int64_t kMaxFetchedPanels =
    16;  // of an adapter's A whose successor is fetched: rank 256
inline constexpr int64_t kSerialProducts =
    1 << 16;  // below this a second thread costs more than it brings

// Panels of a piece of the outputs, where all rows run together: as few pieces as keep the shares
// even, since each segment pays once a piece. A multiple of `group`, the panels of the dense
// product's tile.
inline int64_t piece_panels(int64_t panels, int64_t group) {
  constexpr int64_t kPieces = 28, kMaxPanels = 64;
  int64_t piece = group;
  while (piece < kMaxPanels && panels / (2 * piece) >= (piece < 4 ? kPieces / 2 : kPieces))
    piece *= 2;
  return piece;
}

}  // namespace valora::kernels
