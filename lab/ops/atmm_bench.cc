#include "lab/ops/atmm_bench.h"

#include <memory>

#include "lab/ops/atmm_rivals.h"
#include "lab/ops/single_tile.h"

namespace valora::bench {
namespace {

// Our results are rounded to bf16 once, the rivals' several times.
constexpr double kAtmmTolerance = 0.03;
constexpr int kSearchRounds = 5;

std::vector<AtmmShape> full_grid() {
  std::vector<AtmmShape> grid;
  const std::vector<std::vector<int64_t>> ranks{{8}, {16}, {32}, {64}, {128}, {8, 16, 32, 64}};
  for (const int64_t hidden : {896, 4096})
    for (const auto& rank : ranks) {
      grid.push_back({1, 1, hidden, rank, "identical"});
      for (const int64_t requests : {4, 16, 64})
        for (const char* popularity : {"distinct", "uniform", "zipf:1.5", "identical"})
          grid.push_back({requests, 1, hidden, rank, popularity});
      for (const int64_t tokens : {16, 64, 128})
        for (const char* popularity : {"distinct", "zipf:1.5", "identical"})
          grid.push_back({8, tokens, hidden, rank, popularity});
      grid.push_back({8, 1, hidden, rank, "distinct", true});
      grid.push_back({4, 64, hidden, rank, "distinct", true});
    }
  return grid;
}

std::vector<AtmmShape> quick_grid() {
  std::vector<AtmmShape> grid;
  for (const int64_t hidden : {896, 4096})
    for (const int64_t rank : {8, 16, 64}) {
      grid.push_back({1, 1, hidden, {rank}, "identical"});
      for (const char* popularity : {"distinct", "zipf:1.5"})
        grid.push_back({16, 1, hidden, {rank}, popularity});
      if (rank == 8) continue;
      for (const char* popularity : {"distinct", "identical"})
        grid.push_back({4, 64, hidden, {rank}, popularity});
    }
  grid.push_back({8, 1, 4096, {8, 16, 32, 64}, "distinct"});
  grid.push_back({8, 1, 4096, {16}, "distinct", true});
  return grid;
}

void search_tile(const AtmmShape& shape, TileSearch& search) {
  const AtmmProblem problem = make_problem(shape);
  const std::vector<Timing> timings = race(tiled_products(problem, search.candidates()),
                                           {.seconds = 0, .min_rounds = kSearchRounds});
  std::vector<double> seconds;
  for (const Timing& timing : timings) seconds.push_back(timing.seconds.p50);
  search.add(seconds);
}

Measurement measure(const AtmmShape& shape, const TileSearch& search, Bench& bench) {
  const AtmmProblem problem = make_problem(shape);
  const kernels::CpuTile tile = search.best();
  bench.notes["atmm_single_tile"] = {
      {"rows", tile.rows}, {"panels", tile.panels}, {"chains", tile.chains}};
  bench.notes["atmm_most_to_win_by_tiles"] = search.most_to_win();
  return compete(bench, problem.work(),
                 {our_products(problem, kOurs), our_products(problem, kSingleTile, tile),
                  aten_products(problem), rank_row_products(problem), static_tile_products(problem),
                  einsum_products(problem)},
                 kAtmmTolerance);
}

}  // namespace

std::vector<Shape> atmm_shapes(bool quick) {
  const std::vector<AtmmShape> grid = quick ? quick_grid() : full_grid();
  const auto search = std::make_shared<TileSearch>(candidate_tiles());
  std::vector<Shape> shapes;
  for (const AtmmShape& shape : grid) {
    if (shape.cold) continue;  // memory-bound: tiles hardly matter
    shapes.push_back({"atmm", shape.label(), shape.fields(), [shape, search](Bench&) {
                        search_tile(shape, *search);
                        return std::nullopt;
                      }});
  }
  for (const AtmmShape& shape : grid)
    shapes.push_back({"atmm", shape.label(), shape.fields(),
                      [shape, search](Bench& bench) { return measure(shape, *search, bench); }});
  return shapes;
}

}  // namespace valora::bench
