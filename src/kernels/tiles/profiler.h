// What a product takes with a tile, on this machine.
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/parallel.h"
#include "kernels/tiles/tile.h"

namespace valora::kernels {

// Runs the kernels of the shape's instruction set, which must be supported, over weights that no
// cache holds: each measurement takes other ones. Dense products run as projections do, over the
// pool and with all their bookkeeping, a wide one over a part of its outputs; shrink and expand run
// on one thread, and their time is the geometric mean of that over cold weights and that over the
// same ones again. Changes isa() and use_tiles() while it measures; no other kernel may run
// meanwhile.
class TileProfiler {
 public:
  // cold_bytes: of weights to go through before any is seen again; several times the last cache.
  TileProfiler(const Clock& clock, ParallelFor parallel, size_t cold_bytes = size_t{128} << 20);
  ~TileProfiler();

  double seconds(const ProductShape& shape, const CpuTile& tile);

 private:
  class Memory;

  template <typename T>
  double measure(const ProductShape& shape, const CpuTile& tile, bool cold);

  const Clock& clock_;
  ParallelFor parallel_;
  std::unique_ptr<Memory> memory_;
};

}  // namespace valora::kernels
