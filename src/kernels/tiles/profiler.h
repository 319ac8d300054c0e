// Measures the run time of products with given tiles on this machine.
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/threads/parallel.h"
#include "kernels/tiles/tile.h"

namespace valora::kernels {

// Runs the kernels of the shape's instruction set, which must be supported. Cold runs use
// different weights, which are not in any cache. Dense products run as whole projections on the
// thread pool; wide ones are measured on a part of their outputs. Shrinks and expands run on one
// thread; their result is the geometric mean of the times with cold and warm weights. Changes isa()
// and use_tiles() during a measurement, so no other kernel may run. Not thread-safe.
class TileProfiler {
 public:
  // cold_bytes: total size of the weights to cycle through; should be several times the last-level
  // cache.
  TileProfiler(const Clock& clock, ParallelFor parallel, size_t cold_bytes = size_t{128} << 20);
  ~TileProfiler();

  // Seconds per run.
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
