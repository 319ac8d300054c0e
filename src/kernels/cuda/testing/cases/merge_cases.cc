#include <cmath>
#include <iterator>
#include <string>

#include "kernels/cuda/merge.h"
#include "kernels/cuda/testing/cases/cases.h"
#include "kernels/cuda/testing/cases/factors.h"
#include "kernels/cuda/testing/cases/integers.h"
#include "kernels/cuda/testing/report.h"
#include "kernels/cuda/testing/threads.h"

namespace valora::kernels::cuda {
namespace {

constexpr double kInner = 3e-6;

struct Linear {
  int out = 0, in = 0, rank = 0;
  int rows_per_piece = 0;
};

std::string name_of(Dtype dtype, const std::vector<Linear>& linears, bool in_place, size_t shift,
                    const std::vector<IntegerForm>& forms, const CudaTile& tile) {
  std::string name = name_of(dtype);
  name += " " + std::to_string(tile.width) + "/" + std::to_string(tile.stages);
  for (const Linear& l : linears)
    name += " " + std::to_string(l.out) + "x" + std::to_string(l.in) + " rank " +
            std::to_string(l.rank) + (l.rows_per_piece > 0 ? " pieces" : "");
  if (in_place) name += " in place";
  if (shift > 0) name += " shifted";
  for (const IntegerForm& form : forms) name += ", " + describe(form);
  return name;
}

// weight(output, input): before the merge.
template <typename WeightAt>
std::vector<Expected> merged_weights(const FactorPair& pair, double coefficient,
                                     const WeightAt& weight) {
  std::vector<Expected> merged(static_cast<size_t>(pair.out) * pair.in);
  for_each_index(pair.out, [&](int64_t row) {
    for (int64_t column = 0; column < pair.in; ++column) {
      const double w = weight(row, column);
      Expected e{w, std::abs(w)};
      for (int64_t r = 0; r < pair.rank; ++r) {
        const double term =
            coefficient * pair.b[row * pair.rank + r] * pair.a[r * pair.in + column];
        e.value += term, e.size += std::abs(term);
      }
      merged[row * pair.in + column] = e;
    }
  });
  return merged;
}

// Every compiled tile.
constexpr CudaTile kTiles[] = {{64, 4, 1, 1}, {128, 8, 2, 1}, {128, 8, 3, 1}};

// Merges all linears in one launch. in_place: `merged` is the weight. forms: formats of integer
// weights, used in turn.
void merge_case(Group& group, Dtype dtype, const CudaTile& tile, const std::vector<Linear>& linears,
                bool in_place, size_t shift = 0, const std::vector<IntegerForm>& forms = {}) {
  double work = 0;
  for (const Linear& l : linears) work += static_cast<double>(l.out) * l.in * l.rank;
  if (!group.takes(work)) return;
  const std::string name = name_of(dtype, linears, in_place, shift, forms, tile);
  Random random(linears[0].out + linears[0].in);
  Factors factors(dtype);
  std::vector<FactorPair> pairs;
  for (const Linear& l : linears)
    pairs.push_back(factors.add(l.rank, l.in, l.out, l.rows_per_piece, random));
  factors.upload(random);
  std::vector<std::vector<float>> weights;
  std::vector<Integers> integers;
  std::vector<DeviceMemory> memory;
  std::vector<DeviceValues> sources, results;
  std::vector<MergeItem> items;
  for (size_t i = 0; i < linears.size(); ++i) {
    weights.push_back(
        random.values(static_cast<size_t>(linears[i].out) * linears[i].in, dtype, 0.3f));
    sources.emplace_back(weights[i], dtype, shift);
    results.emplace_back(in_place ? 0 : weights[i].size(), dtype, shift);
    items.push_back({sources[i].data(),
                     in_place ? sources[i].data() : results[i].data(),
                     factors.module(pairs[i], 7),
                     i % 2 == 0 ? 1.5f : -0.75f,
                     {}});
    if (forms.empty()) continue;
    IntegerForm form = forms[i % forms.size()];
    form.out = linears[i].out;
    integers.push_back(random_integers(form, linears[i].in, random));
    memory.push_back(upload(integers[i]));
    items[i].weight = nullptr;
    items[i].integers = integers[i].matrix;
    items[i].integers.data = memory[i].data();
  }
  const MergePlan plan = plan_merge(dtype, items.data(), items.size(), tile);
  const bool aligned = shift == 0 && plan.aligned;
  group.check(name + " tile",
              plan.tile.width == (dtype != Dtype::kFloat && aligned ? tile.width : 64),
              "another tile");
  const DeviceTable<DeviceMerge> table(plan.merges);
  if (!group.launched(name, merge(dtype, plan, table.data(), nullptr))) return;
  for (size_t i = 0; i < linears.size(); ++i) {
    const Linear& l = linears[i];
    const auto weight = [&](int64_t row, int64_t column) -> double {
      return forms.empty() ? weights[i][row * l.in + column]
                           : integers[i].value(static_cast<int>(row), static_cast<int>(column));
    };
    const std::vector<Expected> expected = merged_weights(pairs[i], items[i].coefficient, weight);
    const std::string which = name + " linear " + std::to_string(i);
    group.check(which, expected, in_place ? sources[i] : results[i], dtype, kInner);
    if (!in_place && forms.empty()) group.check_same(which + " weight", weights[i], sources[i]);
  }
}

// One to four linears, sometimes in pieces, in place, or unaligned.
void random_merge(Group& group, Dtype dtype, Random& random) {
  std::vector<Linear> linears(random.between(1, 4));
  for (Linear& l : linears) {
    l.out = static_cast<int>(random.between(1, 150));
    l.in = static_cast<int>(random.between(1, 40)) * (random.below(4) > 0 ? 8 : 3);
    l.rank = static_cast<int>(random.between(1, random.below(4) > 0 ? 32 : 140));
    l.rows_per_piece = random.below(3) > 0 ? 0 : static_cast<int>(random.between(1, 20));
  }
  const size_t shift = random.below(6) > 0 ? 0 : size_of(dtype);
  const CudaTile& tile = kTiles[random.below(std::size(kTiles))];
  if (random.below(3) > 0)
    return merge_case(group, dtype, tile, linears, random.below(2) > 0, shift);
  const int bits = random.below(2) > 0 ? 4 : 8;
  merge_case(group, dtype, tile, linears, false, shift,
             {{.bits = bits, .group = 32, .scales = Dtype::kFp16},
              {.bits = bits, .group = 64, .scales = Dtype::kBf16, .zeros = true},
              {.bits = bits, .group = 96, .minimums = true}});
}

void test_tile(Group& group, Dtype dtype, const CudaTile& tile) {
  const auto merge = [&](const std::vector<Linear>& linears, bool in_place, size_t shift = 0,
                         const std::vector<IntegerForm>& forms = {}) {
    merge_case(group, dtype, tile, linears, in_place, shift, forms);
  };
  for (const int rank : {1, 2, 3, 8, 12, 16, 17, 32, 33, 40, 64, 65, 100, 128, 256})
    merge({{72, 136, rank}}, rank % 2 == 0);
  merge({{64, 1024, 16}, {1, 8, 4}, {200, 2056, 64}, {65, 1032, 8, 3}}, false);
  merge({{896, 896, 16}, {128, 896, 64, 16}, {128, 896, 8, 1}}, true);
  merge({{300, 1100, 130, 7}}, false);
  merge({{9, 520, 33}}, false);  // small, with more parts than stages
  merge({{130, 392, 70}, {8, 1160, 3, 1}, {129, 64, 33, 16}}, true);  // ranks of several kinds
  merge({{33, 7, 3}, {64, 1025, 16}}, false);
  merge({{70, 128, 16}}, true, size_of(dtype));
  for (const int bits : {4, 8}) {
    const IntegerForm form{.bits = bits, .group = 32, .scales = Dtype::kBf16, .zeros = true},
        least{.bits = bits, .group = 2000, .minimums = true};
    merge({{72, 136, 8}, {40, 1096, 70}}, false, 0, {form, least});
    merge({{21, 33, 5}}, false, 0, {form});
    merge({{33, 64, 5}}, false, size_of(dtype), {least});
  }
}

}  // namespace

bool test_merge(Dtype dtype, const Selection& selection) {
  Group group(std::string("merge ") + name_of(dtype), selection);
  for (const CudaTile& tile : kTiles)
    if (dtype != Dtype::kFloat || &tile == kTiles) test_tile(group, dtype, tile);
  Random random(selection.seed);
  for (int i = 0; i < selection.random_cases; ++i) random_merge(group, dtype, random);
  return group.finish();
}

}  // namespace valora::kernels::cuda
