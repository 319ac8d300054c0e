#include "kernels/tiles/tune.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/tiles/formula.h"

namespace valora::kernels {
namespace {

// Most rows per product of each kind in a projection (cpu/linear/project.cc).
constexpr int64_t kMostShrinkTokens = 64, kMostExpandTokens = 128;

constexpr int kScreenRounds = 3;  // with all candidates
constexpr int kRounds = 8;        // with the remaining ones
constexpr double kClearlyBehind = 1.2;
constexpr double kNoise = 1.02;
constexpr size_t kMostInRace = 6;

using Timed = std::pair<CpuTile, double>;

const Timed& best_of(const std::vector<Timed>& times) {
  return *std::ranges::min_element(times, {}, &Timed::second);
}

double seconds_of(const std::vector<Timed>& times, const CpuTile& tile) {
  const auto found = std::ranges::find(times, tile, &Timed::first);
  return found == times.end() ? std::numeric_limits<double>::infinity() : found->second;
}

// Measures each candidate once. The order differs per round, so that no candidate always runs after
// the same other one.
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

std::vector<CpuTile> all_tiles(Isa isa) {
  std::vector<CpuTile> tiles;
  for (const uint8_t panels : {1, 2, 4, 8})  // powers of two, like the pieces of a projection
    for (const uint8_t chains : kTileChains) {
      const int most = std::min(kMostTileRows, tile_sums(isa) / (panels * chains));
      for (const int rows : {1, 2, 3, 4, 5, 6, 8, 12})
        if (rows <= most && 2 * rows >= most)
          tiles.push_back({static_cast<uint8_t>(rows), panels, chains});
    }
  return tiles;
}

std::vector<CpuTile> candidate_tiles(const ProductShape& shape) {
  std::vector<CpuTile> tiles{effective_tile(shape, cpu_formula_tile(shape))};
  for (const CpuTile& tile : all_tiles(shape.processor.isa()))
    if (const CpuTile candidate = effective_tile(shape, tile);
        std::ranges::find(tiles, candidate) == tiles.end())
      tiles.push_back(candidate);
  return tiles;
}

TunedShape tune_shape(const ProductShape& shape, const MeasureTile& measure) {
  TunedShape result{shape, {}, effective_tile(shape, cpu_formula_tile(shape)), {}};
  for (const CpuTile& tile : candidate_tiles(shape))
    result.seconds.emplace_back(tile, std::numeric_limits<double>::infinity());
  std::vector<Timed*> race;
  for (Timed& timed : result.seconds) race.push_back(&timed);
  for (int round = 0; round < kRounds; ++round) {
    measure_round(shape, measure, round, race);
    if (round + 1 >= kScreenRounds) drop_those_behind(race);
  }
  // Measures the best and the formula's tile again: the minimum over many candidates is biased.
  result.chosen = best_of(result.seconds).first;
  if (result.chosen == result.formula) return result;
  const auto pointer = [&](const CpuTile& tile) {
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
  for (const CpuTile& tile : all_tiles(tuned.front().shape.processor.isa())) {
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
