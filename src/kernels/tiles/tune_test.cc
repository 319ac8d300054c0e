// The tile search on simulated measurements.
#include "kernels/tiles/tune.h"
#include "kernels/cpu/isa/isa.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/tiles/profiler.h"
#include "kernels/tiles/tile_table.h"

namespace valora::kernels {
namespace {

const TuneSpace kSpace{.linears = {{64, 128}, {256, 64}},
                       .others = {{1000, 64}},
                       .ranks = {8, 32},
                       .max_tokens = 40,
                       .isa = Isa::kAvx512};

// Simulated times: the planted best tile takes 1 ms, and others take longer the more they differ
// from it, plus noise.
struct Planted {
  SimulatedClock clock;
  CpuTile best{2, 2, 2};
  int measurements = 0;
  double difference(const Tile& any) const {
    const CpuTile& tile = std::get<CpuTile>(any);
    return std::abs(tile.rows - best.rows) + std::abs(tile.panels - best.panels) +
           std::abs(tile.chains - best.chains);
  }
  MeasureTile measure() {
    return [this](const ProductShape& shape, const Tile& tile) {
      const double noise = 1 + 0.005 * (++measurements % 3);
      const double seconds =
          1e-3 * noise * (1 + 0.05 * difference(tile)) * (1 + 0.01 * static_cast<double>(shape.m));
      clock.advance(from_seconds(seconds));
      return seconds;
    };
  }
};

TEST(Tuning, CoversEachShapeOnce) {
  const auto shapes = shapes_to_tune(kSpace);
  for (size_t i = 0; i < shapes.size(); ++i)
    EXPECT_EQ(std::count(shapes.begin(), shapes.end(), shapes[i]), 1);
  // 19 buckets (1 to 16, 24, 32, 48) × (3 linears + 2 ranks × 2 shrinks + 2 ranks × 2 expands).
  EXPECT_EQ(shapes.size(), 19u * (3 + 4 + 4));
  EXPECT_EQ(shapes.front().m, 1);
  EXPECT_EQ(shapes[11].m, 2) << "powers of two come first";
  for (const ProductShape& shape : shapes) {
    EXPECT_EQ(token_bucket(shape.m), shape.m);
    const int64_t rank = shape.kind == ProductKind::kShrink ? shape.n : shape.k;
    EXPECT_TRUE(shape.kind == ProductKind::kDense || rank == 8 || rank == 32);
    EXPECT_TRUE(shape.kind == ProductKind::kDense || shape.n < 1000) << "no adapter is there";
  }
}

TEST(Tuning, TriesEachDistinctTileOnce) {
  for (const Isa isa : {Isa::kAvx512Bf16, Isa::kAvx2, Isa::kPortable})
    for (const int64_t m : {1, 7, 64})
      for (const int64_t n : {8, 48, 900}) {
        const ProductShape shape{ProductKind::kDense, false, isa, m, n, 500};
        const auto tiles = candidate_tiles(shape);
        EXPECT_GT(tiles.size(), 0u);
        for (const Tile& tile : tiles) {
          EXPECT_TRUE(is_tile_of(shape, tile));
          EXPECT_EQ(effective_tile(shape, tile), tile);
          EXPECT_EQ(std::count(tiles.begin(), tiles.end(), tile), 1);
        }
      }
}

TEST(Tuning, CoversGpuDecodesAndPrompts) {
  const CudaTuneSpace space{.projections = {{3584, {3584, 512, 512}}, {18944, {3584}}},
                            .weights = 6'000'000,
                            .ranks = {16, 64},
                            .max_tokens = 512,
                            .arch = CudaArch::kSm90};
  const auto shapes = shapes_to_tune(space);
  for (const ProductShape& shape : shapes) EXPECT_EQ(std::ranges::count(shapes, shape), 1);
  // Decodes of 1 to 64 tiles, prompts of 128, 256 and 512 tokens: two ranks, two projections.
  EXPECT_EQ(shapes.size(), (7u + 3u) * 2 * 2 * 2 + 2) << "and a merge of each rank";
  const ProductShape qkv{ProductKind::kShrink, false, CudaArch::kSm90, 8, 48, 3584},
      prompt{ProductKind::kLongExpand, false, CudaArch::kSm90, 16, 4608, 64};
  EXPECT_EQ(std::ranges::count(shapes, qkv), 1) << "the ranks of q, k and v side by side";
  EXPECT_EQ(std::ranges::count(shapes, prompt), 1) << "512 tokens in tiles of 32";
  const ProductShape merge{ProductKind::kMerge, false, CudaArch::kSm90, 1, 6'000'000, 64};
  EXPECT_EQ(shapes.back(), merge);
}

TEST(Tuning, SkipsGpuTilesThatCannotPayOff) {
  for (const ProductKind kind :
       {ProductKind::kShrink, ProductKind::kExpand, ProductKind::kLongShrink,
        ProductKind::kLongExpand, ProductKind::kMerge})
    for (const int64_t m : {1, 64}) {
      const int64_t n = is_shrink(kind) ? 16 : 3584, k = is_shrink(kind) ? 3584 : 16;
      const ProductShape shape{kind, false, CudaArch::kSm90, m, n, k};
      const auto tiles = candidate_tiles(shape);
      EXPECT_GE(tiles.size(), 3u);
      for (const Tile& tile : tiles) {
        EXPECT_TRUE(is_tile_of(shape, tile));
        EXPECT_EQ(effective_tile(shape, tile), tile);
        EXPECT_EQ(std::ranges::count(tiles, tile), 1);
      }
    }
  const ProductShape full{ProductKind::kShrink, false, CudaArch::kSm90, 1000, 16, 3584};
  for (const Tile& tile : candidate_tiles(full))
    EXPECT_EQ(std::get<CudaTile>(tile).splits, 1) << "the GPU is full without splits";
}

TEST(Tuning, FindsPlantedBestTile) {
  Planted planted;
  for (const ProductShape& shape : shapes_to_tune(kSpace)) {
    const TunedShape tuned = tune_shape(shape, planted.measure());
    const auto candidates = candidate_tiles(shape);
    const Tile nearest = *std::ranges::min_element(
        candidates, {}, [&](const Tile& tile) { return planted.difference(tile); });
    // The formula's tile is kept if it is equally good within the noise.
    if (tuned.chosen != tuned.formula)
      EXPECT_EQ(planted.difference(tuned.chosen), planted.difference(nearest));
    else
      EXPECT_EQ(planted.difference(tuned.formula), planted.difference(nearest));
  }
}

TEST(Tuning, DropsClearlySlowerTiles) {
  Planted planted;
  const ProductShape shape{ProductKind::kDense, false, Isa::kAvx512, 8, 900, 900};
  const size_t all = candidate_tiles(shape).size();
  tune_shape(shape, planted.measure());
  EXPECT_LT(planted.measurements, static_cast<int>(all * 6));
}

TEST(Tuning, KeepsTheFormulaWhereNothingIsFaster) {
  const ProductShape shape{ProductKind::kDense, false, Isa::kAvx512, 8, 900, 900};
  int calls = 0;
  const TunedShape tuned = tune_shape(
      shape, [&](const ProductShape&, const Tile&) { return 1e-3 * (1 + 0.01 * (++calls % 2)); });
  EXPECT_EQ(tuned.chosen, effective_tile(shape, formula_tile(shape)));
}

TEST(Tuning, StopsAtBudgetAndResumes) {
  Planted planted;
  const auto shapes = shapes_to_tune(kSpace);
  const auto first = tune(shapes, {}, planted.measure(), planted.clock, 1.0, {});
  ASSERT_GT(first.size(), 0u);
  ASSERT_LT(first.size(), shapes.size());
  EXPECT_LT(seconds(planted.clock.now().time_since_epoch()), 1.5);
  std::vector<TileEntry> known;
  for (const TunedShape& tuned : first) known.push_back({TileKey::of(tuned.shape), tuned.chosen});
  std::vector<int> done;
  const auto rest = tune(shapes, TileTable(known), planted.measure(), planted.clock, 1e9,
                         [&](const TuneProgress& p) {
                           done.push_back(p.done);
                           EXPECT_EQ(p.total, static_cast<int>(shapes.size()));
                         });
  EXPECT_EQ(first.size() + rest.size(), shapes.size());
  EXPECT_EQ(rest.front().shape, shapes[first.size()]);
  EXPECT_EQ(done.back(), static_cast<int>(shapes.size()));
}

TEST(Tuning, ReportsGain) {
  const ProductShape a{ProductKind::kShrink, false, Isa::kAvx512, 1, 64, 900},
      b{ProductKind::kShrink, false, Isa::kAvx512, 12, 64, 900};
  std::vector<TunedShape> tuned;
  for (const ProductShape& shape : {a, b}) {
    // 1 s for the best tile, 2 s for all others.
    const Tile best = shape == a ? CpuTile{1, 1, 4} : CpuTile{12, 2, 1};
    tuned.push_back(tune_shape(
        shape, [&](const ProductShape&, const Tile& tile) { return tile == best ? 1.0 : 2.0; }));
    EXPECT_EQ(tuned.back().chosen, best);
  }
  const TuneGains gains = gains_of(tuned);
  EXPECT_NEAR(gains.single.mean, std::sqrt(2.0), 1e-9);
  EXPECT_EQ(gains.single.worst, 2);
  EXPECT_NEAR(gains.formula.mean, 2, 1e-9);
}

// A clock that advances by one second per call.
class Ticking final : public Clock {
 public:
  TimePoint now() const override { return time_ += std::chrono::seconds(1); }

 private:
  mutable TimePoint time_{};
};

TEST(Profiling, RunsEveryKindWithEveryTile) {
  const Ticking clock;
  TileProfiler profiler(clock, serial_for, 1 << 16);
  for (const Isa isa : supported_isas())
    for (const bool float32 : {false, true})
      for (const ProductKind kind :
           {ProductKind::kDense, ProductKind::kShrink, ProductKind::kExpand}) {
        const ProductShape shape{kind, float32, isa, 9, 40, 33};
        for (const Tile& tile : candidate_tiles(shape)) {
          const double seconds = profiler.seconds(shape, std::get<CpuTile>(tile));
          EXPECT_GT(seconds, 0);
          EXPECT_LE(seconds, 1) << "one second over the repeats";
        }
      }
}

}  // namespace
}  // namespace valora::kernels
