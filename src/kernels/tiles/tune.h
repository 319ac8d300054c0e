// The tile search (VaLoRA §4.3.2, Alg. 2): measures every candidate tile for every shape that a
// model's projections can have.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "kernels/tiles/tile_table.h"

namespace valora::kernels {

// The linears and ranks of a model and its adapters.
struct TuneSpace {
  std::vector<std::pair<int64_t, int64_t>> linears;  // (outputs, inputs), may have adapters
  std::vector<std::pair<int64_t, int64_t>> others;   // (outputs, inputs), never have adapters
  std::vector<int64_t> ranks;
  int64_t max_tokens = 2048;  // per step
  bool float32 = false;
  Isa isa = Isa::kPortable;
};
// Each shape once. Token buckets that are powers of two come first, so that an interrupted run
// still covers all linears.
std::vector<ProductShape> shapes_to_tune(const TuneSpace& space);

// Linears with the same input whose low-rank products a GPU computes in one launch.
struct CudaProjection {
  int64_t in = 0;
  std::vector<int64_t> outs;
};
struct CudaTuneSpace {
  std::vector<CudaProjection> projections;
  int64_t weights = 0;  // of all linears that a merge changes; 0: no merges
  std::vector<int64_t> ranks;
  int64_t max_tokens = 2048;  // per step
  CudaArch arch = CudaArch::kSm90;
};
// Each shape once; the shapes of decode steps come first.
std::vector<ProductShape> shapes_to_tune(const CudaTuneSpace& space);

// All tiles of the shape's processor that may be the best for some shape of its kind.
std::vector<Tile> all_tiles(const ProductShape& shape);
// The tiles that have different effects on this shape (effective_tile), including the formula's. On
// GPUs, without those that cannot fill the GPU or leave a thread block too little work (VaLoRA
// §4.3.2: knowledge of the hardware narrows the search).
std::vector<Tile> candidate_tiles(const ProductShape& shape);

// Seconds per run of the product with this tile.
using MeasureTile = std::function<double(const ProductShape& shape, const Tile& tile)>;

struct TunedShape {
  ProductShape shape;
  Tile chosen, formula;                          // as effective_tile() returns them
  std::vector<std::pair<Tile, double>> seconds;  // minimum per candidate
};
// Measures the candidates in turn, dropping clearly slower ones after the first rounds. Keeps the
// formula's tile unless the best one is faster by more than the noise.
TunedShape tune_shape(const ProductShape& shape, const MeasureTile& measure);

struct TuneProgress {
  int done = 0, total = 0;
  const TunedShape* last = nullptr;
};
// Tunes all shapes missing from `known`, until `budget` seconds have passed.
std::vector<TunedShape> tune(const std::vector<ProductShape>& shapes, const TileTable& known,
                             const MeasureTile& measure, const Clock& clock, double budget,
                             const std::function<void(const TuneProgress&)>& progress);

// The time with another choice of tiles divided by the time with the tuned ones: geometric mean and
// maximum.
struct TuneGain {
  double mean = 1, worst = 1;
};
struct TuneGains {
  TuneGain formula, single;
  Tile single_tile;  // the best single tile for all shapes
};
TuneGains gains_of(const std::vector<TunedShape>& tuned);

}  // namespace valora::kernels
