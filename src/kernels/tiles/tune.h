// Measuring tiles (VaLoRA §4.3.2, Alg. 2): for every shape that a model's projections can have,
// every candidate.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "kernels/tiles/tile_table.h"

namespace valora::kernels {

// What a model and its adapters can ask for.
struct TuneSpace {
  std::vector<std::pair<int64_t, int64_t>> linears;  // outputs, inputs; adapters may be on them
  std::vector<std::pair<int64_t, int64_t>> others;   // that no adapter is on
  std::vector<int64_t> ranks;
  int64_t max_tokens = 2048;  // of a step
  bool float32 = false;
  Isa isa = Isa::kPortable;
};
// Each once: token buckets that are powers of two first, so that a run that ends early has
// something for all.
std::vector<ProductShape> shapes_to_tune(const TuneSpace& space);

// The tiles of an instruction set that are worth a try on some shape.
std::vector<CpuTile> all_tiles(Isa isa);
// Those that differ on this shape, and the formula's.
std::vector<CpuTile> candidate_tiles(const ProductShape& shape);

// Seconds that the product takes with this tile, once.
using MeasureTile = std::function<double(const ProductShape& shape, const CpuTile& tile)>;

struct TunedShape {
  ProductShape shape;
  CpuTile chosen, formula;  // effective
  std::vector<std::pair<CpuTile, double>>
      seconds;  // least of each candidate, of some over fewer rounds
};
// Candidates take turns; those clearly behind leave after the first rounds. The formula's tile is
// kept where the best is not faster by more than noise.
TunedShape tune_shape(const ProductShape& shape, const MeasureTile& measure);

struct TuneProgress {
  int done = 0, total = 0;
  const TunedShape* last = nullptr;
};
// All shapes that `known` lacks, until `budget` seconds have passed.
std::vector<TunedShape> tune(const std::vector<ProductShape>& shapes, const TileTable& known,
                             const MeasureTile& measure, const Clock& clock, double budget,
                             const std::function<void(const TuneProgress&)>& progress);

// How much longer other choices take than the tuned one: geometric mean, and worst case.
struct TuneGain {
  double mean = 1, worst = 1;
};
struct TuneGains {
  TuneGain formula, single;
  CpuTile single_tile;  // the one that would lose least if it served all shapes
};
TuneGains gains_of(const std::vector<TunedShape>& tuned);

}  // namespace valora::kernels
