#include "kernels/tiles/tune.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/cpu/isa/isa.h"
#include "kernels/tiles/tile_table.h"

namespace valora::kernels {
namespace {

// Most rows per product of each kind in a projection (cpu/linear/project.cc).
constexpr int64_t kMostShrinkTokens = 64, kMostExpandTokens = 128;

// On GPUs: the most tiles in a decode step, the fewest tokens in a step with long segments, and the
// tokens per tile of such steps (kernels/cuda/lora/plan.cc).
constexpr int64_t kMostDecodes = 64, kLongTokens = 128, kLongTileTokens = 32;

constexpr int kScreenRounds = 3;  // with all candidates
constexpr int kRounds = 8;        // with the remaining ones
constexpr double kClearlyBehind = 1.2;
constexpr double kNoise = 1.02;
constexpr size_t kMostInRace = 6;

using Timed = std::pair<Tile, double>;

const Timed& best_of(const std::vector<Timed>& times) {
  return *std::ranges::min_element(times, {}, &Timed::second);
}

double seconds_of(const std::vector<Timed>& times, const Tile& tile) {
  const auto found = std::ranges::find(times, tile, &Timed::first);
  return found == times.end() ? std::numeric_limits<double>::infinity() : found->second;
}

// Measures each candidate once. The order varies between rounds, so that no candidate always runs
// after the same other one.
void measure_round(const ProductShape& shape, const MeasureTile& measure, int round,
                   std::vector<Timed*>& race) {
  if (round % 2) std::ranges::reverse(race);
  for (Timed* timed : race) timed->second = std::min(timed->second, measure(shape, timed->first));
  if (round % 2) std::ranges::reverse(race);
}

void drop_those_behind(std::vector<Timed*>& race) {
  std::ranges::stable_sort(race, {}, [](const Timed* timed) { return timed->second; });
  const double limit = race.front()->second * kClearlyBehind;
  std::erase_if(race, [&](const Timed* timed) { return timed->second > limit; });
  if (race.size() > kMostInRace) race.resize(kMostInRace);
}

template <typename Seconds>
TuneGain gain_of(const std::vector<TunedShape>& tuned, const Seconds& seconds) {
  TuneGain gain;
  double logs = 0;
  for (const TunedShape& t : tuned) {
    const double ratio = seconds(t) / seconds_of(t.seconds, t.chosen);
    logs += std::log(ratio);
    gain.worst = std::max(gain.worst, ratio);
  }
  if (!tuned.empty()) gain.mean = std::exp(logs / static_cast<double>(tuned.size()));
  return gain;
}

}  // namespace

std::vector<ProductShape> shapes_to_tune(const TuneSpace& space) {
  std::vector<ProductShape> shapes;
  const auto add = [&](ProductKind kind, int64_t m, int64_t n, int64_t k) {
    const ProductShape shape{kind, space.float32, space.isa, m, n, k};
    if (std::ranges::find(shapes, shape) == shapes.end()) shapes.push_back(shape);
  };
  const int64_t last = token_bucket(space.max_tokens);
  for (const bool powers : {true, false})
    for (int64_t m = 1; m <= last; m = next_bucket(m)) {
      if (std::has_single_bit(static_cast<uint64_t>(m)) != powers) continue;
      for (const auto& [out, in] : space.others) add(ProductKind::kDense, m, out, in);
      for (const auto& [out, in] : space.linears) {
        add(ProductKind::kDense, m, out, in);
        for (const int64_t rank : space.ranks) {
          if (m <= kMostShrinkTokens) add(ProductKind::kShrink, m, rank, in);
          if (m <= kMostExpandTokens) add(ProductKind::kExpand, m, out, rank);
        }
      }
    }
  return shapes;
}

std::vector<ProductShape> shapes_to_tune(const CudaTuneSpace& space) {
  std::vector<ProductShape> shapes;
  const auto add = [&](ProductKind kind, int64_t m, int64_t n, int64_t k) {
    const ProductShape shape{kind, false, space.arch, m, n, k};
    if (std::ranges::find(shapes, shape) == shapes.end()) shapes.push_back(shape);
  };
  const auto add_all = [&](int64_t m, ProductKind shrink, ProductKind expand) {
    for (const CudaProjection& p : space.projections)
      for (const int64_t rank : space.ranks) {
        add(shrink, m, rank * static_cast<int64_t>(p.outs.size()), p.in);
        add(expand, m, std::accumulate(p.outs.begin(), p.outs.end(), int64_t{0}), rank);
      }
  };
  for (int64_t m = 1; m <= kMostDecodes; m *= 2)
    add_all(m, ProductKind::kShrink, ProductKind::kExpand);
  for (int64_t m = kLongTokens / kLongTileTokens; m * kLongTileTokens <= space.max_tokens; m *= 2)
    add_all(m, ProductKind::kLongShrink, ProductKind::kLongExpand);
  for (const int64_t rank : space.ranks)
    if (space.weights > 0) add(ProductKind::kMerge, 1, space.weights, rank);
  return shapes;
}

namespace {

std::vector<Tile> all_cpu_tiles(Isa isa) {
  std::vector<Tile> tiles;
  for (const uint8_t panels : {1, 2, 4, 8})  // powers of two, like the pieces of a projection
    for (const uint8_t chains : kTileChains) {
      const int most = std::min(kMostTileRows, tile_sums(isa) / (panels * chains));
      for (const int rows : {1, 2, 3, 4, 5, 6, 8, 12})
        if (rows <= most && 2 * rows >= most)
          tiles.push_back(CpuTile{static_cast<uint8_t>(rows), panels, chains});
    }
  return tiles;
}

std::vector<Tile> all_cuda_tiles(ProductKind kind) {
  std::vector<Tile> tiles;
  const auto add = [&](int width, int warps, int stages, int splits) {
    tiles.push_back(CudaTile{static_cast<uint16_t>(width), static_cast<uint8_t>(warps),
                             static_cast<uint8_t>(stages), static_cast<uint8_t>(splits)});
  };
  if (kind == ProductKind::kMerge) {
    add(kCudaMergeWidths[0], kCudaMergeWidths[0] / kCudaMergeOuts, 1, 1);
    for (const int stages : kCudaMergeStages)
      add(kCudaMergeWidths[1], kCudaMergeWidths[1] / kCudaMergeOuts, stages, 1);
    return tiles;
  }
  if (is_expand(kind)) {
    for (const int warps : kCudaExpandWarps)
      for (const int groups : kCudaExpandGroups) add(warps * groups * kCudaGroupOuts, warps, 1, 1);
    return tiles;
  }
  for (const int width : kCudaShrinkWidths)
    for (const int warps : kCudaShrinkWarps)
      for (const int stages : kCudaShrinkStages)
        for (const int splits : kCudaSplits)
          if (cuda_stages_fit(is_long(kind) ? 2 : 1, width, stages))
            add(width, warps, stages, splits);
  return tiles;
}

// True if splitting a shrink can pay off. It cannot if the GPU is full without splits, or if a warp
// would get less than one chunk.
bool is_worth_measuring(const ProductShape& s, const Tile& tile) {
  const CudaTile* t = std::get_if<CudaTile>(&tile);
  if (!t || !is_shrink(s.kind) || t->splits == 1) return true;
  constexpr int64_t kBlocksPerProcessor = 2;
  const int64_t blocks = s.m * ((s.n + t->width - 1) / t->width);
  return blocks * t->splits / 2 <
             kBlocksPerProcessor * typical_multiprocessors(s.processor.arch()) &&
         int64_t{t->splits} * t->warps * kCudaChunk <= s.k;
}

}  // namespace

std::vector<Tile> all_tiles(const ProductShape& shape) {
  return shape.processor.device() == Device::kCuda ? all_cuda_tiles(shape.kind)
                                                   : all_cpu_tiles(shape.processor.isa());
}

std::vector<Tile> candidate_tiles(const ProductShape& shape) {
  std::vector<Tile> tiles{effective_tile(shape, formula_tile(shape))};
  for (const Tile& tile : all_tiles(shape))
    if (const Tile candidate = effective_tile(shape, tile);
        is_worth_measuring(shape, candidate) && std::ranges::find(tiles, candidate) == tiles.end())
      tiles.push_back(candidate);
  return tiles;
}

TunedShape tune_shape(const ProductShape& shape, const MeasureTile& measure) {
  TunedShape result{shape, {}, effective_tile(shape, formula_tile(shape)), {}};
  for (const Tile& tile : candidate_tiles(shape))
    result.seconds.emplace_back(tile, std::numeric_limits<double>::infinity());
  std::vector<Timed*> race;
  for (Timed& timed : result.seconds) race.push_back(&timed);
  for (int round = 0; round < kRounds; ++round) {
    measure_round(shape, measure, round, race);
    if (round + 1 >= kScreenRounds) drop_those_behind(race);
  }
  // Measures the best tile and the formula's again, because the minimum over many candidates is
  // biased.
  result.chosen = best_of(result.seconds).first;
  if (result.chosen == result.formula) return result;
  const auto pointer = [&](const Tile& tile) {
    return &*std::ranges::find(result.seconds, tile, &Timed::first);
  };
  Timed best{result.chosen, std::numeric_limits<double>::infinity()},
      formula{result.formula, best.second};
  std::vector<Timed*> both{&best, &formula};
  for (int round = 0; round < kRounds; ++round) measure_round(shape, measure, round, both);
  pointer(best.first)->second = best.second;
  pointer(formula.first)->second = std::min(formula.second, pointer(formula.first)->second);
  if (formula.second <= best.second * kNoise) result.chosen = result.formula;
  return result;
}

std::vector<TunedShape> tune(const std::vector<ProductShape>& shapes, const TileTable& known,
                             const MeasureTile& measure, const Clock& clock, double budget,
                             const std::function<void(const TuneProgress&)>& progress) {
  std::vector<TunedShape> tuned;
  const TimePoint start = clock.now();
  TuneProgress now{0, static_cast<int>(shapes.size()), nullptr};
  for (const ProductShape& shape : shapes) {
    if (!known.exact(TileKey::of(shape))) {
      if (seconds(clock.now() - start) >= budget) break;
      tuned.push_back(tune_shape(shape, measure));
      now.last = &tuned.back();
    }
    ++now.done;
    if (progress) progress(now);
    now.last = nullptr;
  }
  return tuned;
}

TuneGains gains_of(const std::vector<TunedShape>& tuned) {
  TuneGains gains;
  gains.formula =
      gain_of(tuned, [](const TunedShape& t) { return seconds_of(t.seconds, t.formula); });
  if (tuned.empty()) return gains;
  double least = std::numeric_limits<double>::infinity();
  for (const Tile& tile : all_tiles(tuned.front().shape)) {
    const TuneGain gain = gain_of(tuned, [&](const TunedShape& t) {
      return seconds_of(t.seconds, effective_tile(t.shape, tile));
    });
    if (gain.mean >= least) continue;
    least = gain.mean;
    gains.single = gain;
    gains.single_tile = tile;
  }
  return gains;
}

}  // namespace valora::kernels
