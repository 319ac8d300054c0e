// For tests: the shape grids of Punica's and vLLM's kernel tests, plus variations.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "ops/conformance/cases.h"

namespace valora::ops::conformance {

inline constexpr int64_t kRanks[] = {1, 4, 8, 16, 32, 64, 128, 256};

using Random = std::mt19937;

// Not std::uniform_int_distribution, whose results differ between standard libraries.
inline int64_t below(Random& random, int64_t bound) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(bound));
}

template <typename T, size_t N>
T any_of(Random& random, const T (&values)[N]) {
  return values[below(random, N)];
}

// The number of tokens of each adapter.
inline std::vector<int64_t> shares(const std::string& popularity, int64_t tokens) {
  if (popularity == "identical" || tokens == 1) return {tokens};
  if (popularity == "distinct") return std::vector<int64_t>(static_cast<size_t>(tokens), 1);
  if (popularity == "skewed") return {1, tokens - 1};
  const auto count = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(tokens))));
  std::vector<double> weights(static_cast<size_t>(count), 1);
  if (popularity == "zipf")
    for (int64_t i = 0; i < count; ++i) weights[i] = std::pow(static_cast<double>(i + 1), -1.5);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int64_t> result;
  int64_t begin = 0;
  double reached = 0;
  for (const double weight : weights) {
    reached += weight;
    const int64_t end = std::llround(static_cast<double>(tokens) * reached / sum);
    if (end > begin) result.push_back(end - begin);
    begin = std::max(begin, end);
  }
  return result;
}

// Varies a case: mixed ranks, negative and other coefficients, slices without an adapter, tokens
// without an adapter, empty segments, and overlapping segments.
inline void vary(Case& c, Random& random) {
  constexpr float kCoefficients[] = {1, -1, 0.5f, -1.5f, 2};
  for (Adapter& adapter : c.adapters)
    for (int64_t& rank : adapter.ranks) {
      if (below(random, 3) == 0) rank = any_of(random, kRanks);
      if (adapter.ranks.size() > 1 && below(random, 4) == 0) rank = 0;
    }
  std::vector<Use> uses;
  for (Use use : c.uses) {
    use.coefficient = any_of(random, kCoefficients);
    const int64_t kind = below(random, 6);
    if (kind == 0 && c.uses.size() > 1) continue;
    if (kind == 1) uses.push_back({use.begin, use.begin, use.adapter, 1});
    uses.push_back(use);
    if (kind == 2)
      uses.push_back({use.begin, use.begin + below(random, c.tokens - use.begin + 1),
                      static_cast<int>(below(random, static_cast<int64_t>(c.adapters.size()))),
                      -0.5f});
  }
  c.uses = std::move(uses);
  c.name += " varied";
}

// Punica's hidden sizes, ranks, adapter popularities and batch sizes; each case as is and varied.
inline std::vector<Case> punica_grid() {
  std::vector<Case> grid;
  Random random(1);
  for (const auto& [in, out] : {std::pair<int64_t, int64_t>{4096, 11008}, {11008, 4096}})
    for (const int64_t rank : {16, 32, 64, 96, 128})
      for (const std::string popularity : {"distinct", "uniform", "zipf", "identical", "skewed"})
        for (const int64_t tokens : {1, 2, 3, 4, 7, 10, 16, 32, 64, 133}) {
          Case c{popularity + " " + std::to_string(tokens) + " of rank " + std::to_string(rank),
                 in,
                 {out},
                 tokens,
                 {},
                 {}};
          int64_t begin = 0;
          for (const int64_t share : shares(popularity, tokens)) {
            c.uses.push_back({begin, begin + share, static_cast<int>(c.adapters.size()), 1});
            c.adapters.push_back({{rank}});
            begin += share;
          }
          grid.push_back(c);
          vary(c, random);
          grid.push_back(std::move(c));
        }
  return grid;
}

// A batch of sequences with random adapters, sorted by adapter.
inline Case sequences(int64_t in, std::vector<int64_t> outs, int64_t batch, int64_t loras,
                      int64_t rank, Random& random) {
  Case c{std::to_string(batch) + " sequences of " + std::to_string(loras) + " adapters of rank " +
             std::to_string(rank),
         in,
         std::move(outs),
         0,
         {},
         {}};
  std::vector<int64_t> tokens(static_cast<size_t>(loras), 0);
  for (int64_t i = 0; i < batch; ++i)
    tokens[below(random, loras)] += below(random, 4) == 0 ? 5 + below(random, 30) : 1;
  for (const int64_t count : tokens) {
    if (count == 0) continue;
    c.uses.push_back({c.tokens, c.tokens + count, static_cast<int>(c.adapters.size()), 1});
    c.adapters.push_back({std::vector<int64_t>(c.outs.size(), rank)});
    c.tokens += count;
  }
  vary(c, random);
  return c;
}

// vLLM's batch sizes, adapter counts, ranks and slices at its hidden size of 2049.
inline std::vector<Case> vllm_grid() {
  std::vector<Case> grid;
  Random random(2);
  for (const int64_t slices : {1, 2, 3})
    for (const int64_t rank : kRanks)
      for (const int64_t batch : {1, 4, 16, 32})
        for (const int64_t loras : {1, 8, 32, 128})
          grid.push_back(sequences(2049, std::vector<int64_t>(static_cast<size_t>(slices), 2049),
                                   batch, loras, rank, random));
  return grid;
}

// vLLM's hidden sizes plus odd ones, as inputs and as outputs.
inline std::vector<Case> width_grid() {
  constexpr int64_t kWidths[] = {
      1,     3,     17,    33,    63,    64,     127,    128,    255,   256,   512,   513,   896,
      1024,  1031,  1152,  1216,  1280,  1536,   1664,   2048,   2049,  2240,  2304,  2368,  2432,
      2560,  2752,  3072,  3328,  3456,  3584,   3712,   4095,   4096,  4480,  4608,  4736,  4864,
      5120,  5504,  5632,  5888,  6144,  6400,   6848,   6912,   7168,  7424,  8191,  8192,  8960,
      9216,  9472,  10240, 11008, 11264, 13824,  14336,  14784,  14848, 15360, 18944, 22016, 22528,
      24576, 27392, 27648, 29568, 29696, 32000,  32256,  32512,  32768, 33024, 36864, 43264, 49152,
      60544, 60672, 64000, 64256, 65537, 102400, 102656, 128000, 128256};
  std::vector<Case> grid;
  Random random(3);
  for (const int64_t width : kWidths)
    for (const size_t slices : {1, 2, 3}) {
      if (slices > 1 && width > 33024) continue;  // no model has several slices this wide
      grid.push_back(sequences(width, std::vector<int64_t>(slices, 48), 4, 4, 32, random));
      grid.push_back(sequences(64, std::vector<int64_t>(slices, width), 4, 4, 32, random));
    }
  return grid;
}

// The gated MLP (gate and up).
inline std::vector<Case> gated_grid() {
  std::vector<Case> grid;
  Random random(4);
  for (const auto& [in, out] : {std::pair<int64_t, int64_t>{896, 2049}, {2049, 896}, {33, 17}})
    for (const int64_t rank : kRanks)
      for (const int64_t batch : {1, 4, 16, 32}) {
        grid.push_back(sequences(in, {out, out}, batch, 8, rank, random));
        grid.back().gated = true;
      }
  return grid;
}

// A fixed random sample of `count` cases with at most `most_tokens` tokens, in the grid's order.
inline std::vector<Case> sample(const std::vector<Case>& grid, size_t count, int64_t most_tokens) {
  std::vector<Case> small;
  for (const Case& c : grid)
    if (c.tokens <= most_tokens) small.push_back(c);
  std::vector<size_t> order(small.size());
  std::iota(order.begin(), order.end(), 0);
  Random random(5);
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[below(random, static_cast<int64_t>(i))]);
  order.resize(std::min(count, order.size()));
  std::ranges::sort(order);
  std::vector<Case> result;
  for (const size_t i : order) result.push_back(small[i]);
  return result;
}

}  // namespace valora::ops::conformance
