#include <cmath>
#include <numeric>
#include <string>

#include "kernels/cuda/output_change.h"
#include "kernels/cuda/testing/cases/cases.h"
#include "kernels/cuda/testing/cases/factors.h"
#include "kernels/cuda/testing/report.h"
#include "kernels/cuda/vocabulary.h"

namespace valora::kernels::cuda {
namespace {

constexpr double kInner = 5e-6;

// A matrix in scattered pieces.
struct PiecedMatrix {
  PiecedMatrix(Dtype dtype, int rows, int width, int rows_per_piece, Random& random)
      : factors(dtype), pair(factors.add(rows, width, 1, rows_per_piece, random)) {
    factors.upload(random);
  }
  const std::vector<float>& values() const { return pair.a; }
  DeviceLoraFactor on_device() const { return factors.module(pair, 1).a; }

  Factors factors;
  FactorPair pair;
};

struct MatrixSizes {
  int rows, width, rows_per_piece;
};

std::string label(Dtype dtype, const MatrixSizes& s, std::initializer_list<int> more) {
  std::string text = name_of(dtype);
  for (const int n : {s.rows, s.width, s.rows_per_piece}) text += " " + std::to_string(n);
  for (const int n : more) text += " " + std::to_string(n);
  return text;
}

void gather_case(Group& group, Dtype dtype, const MatrixSizes& s, int count) {
  if (!group.takes(static_cast<double>(count) * s.width)) return;
  Random random(s.rows + s.width + count);
  const PiecedMatrix matrix(dtype, s.rows, s.width, s.rows_per_piece, random);
  std::vector<int64_t> rows;
  std::vector<float> expected;
  for (int i = 0; i < count; ++i) {
    rows.push_back(i == 0 ? s.rows - 1 : random.below(s.rows));
    const auto row = matrix.values().begin() + rows.back() * s.width;
    expected.insert(expected.end(), row, row + s.width);
  }
  const DeviceTable<int64_t> indices(rows);
  const DeviceValues out(expected.size(), dtype);
  const std::string name = "gather_rows " + label(dtype, s, {count});
  if (group.launched(name, gather_rows(dtype, matrix.on_device(), s.width, indices.data(), count,
                                       out.data(), nullptr)))
    group.check_same(name, expected, out);
}

// gap: y has that many columns more than the product, which must stay as they are.
void product_case(Group& group, Dtype dtype, const MatrixSizes& s, int first, int tokens, int gap,
                  bool adds) {
  const int rows = s.rows - first, stride = rows + gap;
  if (!group.takes(static_cast<double>(rows) * s.width * tokens)) return;
  Random random(s.rows * 3 + s.width + tokens);
  const PiecedMatrix matrix(dtype, s.rows, s.width, s.rows_per_piece, random);
  const std::vector<float> x =
      random.values(static_cast<size_t>(tokens) * s.width, Dtype::kFloat, 2);
  std::vector<float> y(static_cast<size_t>(tokens) * stride, NAN);
  std::vector<Expected> expected;
  for (int t = 0; t < tokens; ++t)
    for (int i = 0; i < stride; ++i) {
      float& value = y[static_cast<size_t>(t) * stride + i];
      if (i >= rows) {
        expected.push_back({NAN, 0});
        continue;
      }
      if (adds) value = random.uniform(-1, 1);
      Expected sum{adds ? value : 0.0, adds ? std::abs(value) : 0.0};
      for (int k = 0; k < s.width; ++k) {
        const double term = double{x[static_cast<size_t>(t) * s.width + k]} *
                            matrix.values()[static_cast<size_t>(first + i) * s.width + k];
        sum.value += term, sum.size += std::abs(term);
      }
      expected.push_back(sum);
    }
  const DeviceValues dx(x, Dtype::kFloat), dy(y, Dtype::kFloat);
  const std::string name = "row_product " + label(dtype, s, {first, tokens, gap, adds});
  const RowProduct product{dtype,   matrix.on_device(),
                           s.width, first,
                           rows,    static_cast<const float*>(dx.data()),
                           tokens,  static_cast<float*>(dy.data()),
                           stride,  adds};
  if (group.launched(name, row_product(product, nullptr)))
    group.check(name, expected, dy, Dtype::kFloat, kInner);
}

// What a segment's adapter changes on each of two modules.
struct Changes {
  int begin, end;
  float coefficient;
  std::vector<float> shift[2], gain[2];
};

// Overlapping and adjacent segments, some without shifts or gains.
std::vector<Changes> random_changes(int tokens, const int (&outs)[2], Random& random) {
  std::vector<Changes> changes;
  for (int i = 0; i < 6; ++i) {
    const int begin = static_cast<int>(random.below(tokens)),
              end = static_cast<int>(random.between(begin, tokens));
    Changes made{begin, end, random.uniform(-2, 2), {}, {}};
    for (int m = 0; m < 2; ++m) {
      if (random.below(3) > 0) made.shift[m] = random.values(outs[m], Dtype::kFloat);
      if (random.below(3) > 0) made.gain[m] = random.values(outs[m], Dtype::kFloat, 2);
    }
    changes.push_back(made);
  }
  return changes;
}

struct ChangeSizes {
  int tokens, outs[2], gap;
  bool biased;
};

// The tables of a step on the device.
class ChangeTables {
 public:
  explicit ChangeTables(const std::vector<Changes>& changes) {
    std::vector<DeviceLoraSegment> ranges;
    std::vector<std::vector<DeviceOutputChange>> modules;
    for (const Changes& c : changes) {
      ranges.push_back({c.begin, c.end, 0, 1, nullptr});
      const auto uploaded = [&](const std::vector<float>& values) -> const float* {
        if (values.empty()) return nullptr;
        vectors_.emplace_back(values);
        return vectors_.back().data();
      };
      std::vector<DeviceOutputChange> of_modules;
      for (int m = 0; m < 2; ++m) of_modules.push_back({uploaded(c.shift[m]), uploaded(c.gain[m])});
      modules_.emplace_back(of_modules);
      segments_.push_back({modules_.back().data(), c.coefficient});
    }
    const LoraPlan plan = plan_lora(ranges.data(), ranges.size());
    count_ = plan.sizes.expand_tiles;
    tiles_.emplace_back(plan.expand_tiles);
    covers_.emplace_back(plan.covers);
    table_.emplace_back(segments_);
  }
  int32_t count() const { return count_; }
  OutputTables on_device() const { return {table_[0].data(), tiles_[0].data(), covers_[0].data()}; }

 private:
  int32_t count_ = 0;
  std::vector<DeviceTable<float>> vectors_;
  std::vector<DeviceTable<DeviceOutputChange>> modules_;
  std::vector<DeviceOutputSegment> segments_;
  std::vector<DeviceTable<LoraExpandTile>> tiles_;
  std::vector<DeviceTable<int32_t>> covers_;
  std::vector<DeviceTable<DeviceOutputSegment>> table_;
};

Expected changed(float y, float bias, int token, int out, int module,
                 const std::vector<Changes>& changes) {
  Expected e{y, std::abs(y)};
  for (const Changes& c : changes) {
    if (token < c.begin || token >= c.end) continue;
    if (!c.gain[module].empty()) {
      const double gain = c.gain[module][out];
      e.value = gain * (e.value - bias) + bias;
      e.size = std::abs(gain) * (e.size + std::abs(bias)) + std::abs(bias);
    }
    if (c.shift[module].empty()) continue;
    const double shift = double{c.coefficient} * c.shift[module][out];
    e.value += shift, e.size += std::abs(shift);
  }
  return e;
}

void change_case(Group& group, Dtype dtype, const ChangeSizes& s) {
  if (!group.takes(static_cast<double>(s.tokens) * (s.outs[0] + s.outs[1]))) return;
  Random random(s.tokens * 5 + s.outs[0]);
  const std::vector<Changes> changes = random_changes(s.tokens, s.outs, random);
  const ChangeTables tables(changes);
  const int stride = s.outs[0] + s.outs[1] + s.gap;
  const std::vector<float> y = random.values(static_cast<size_t>(s.tokens) * stride, dtype, 3),
                           bias = random.values(stride, dtype, 2);
  std::vector<Expected> expected;
  for (int t = 0; t < s.tokens; ++t)
    for (int i = 0; i < stride; ++i) {
      const float value = y[static_cast<size_t>(t) * stride + i];
      const int module = i >= s.outs[0], out = i - module * s.outs[0];
      expected.push_back(i < s.outs[0] + s.outs[1]
                             ? changed(value, s.biased ? bias[i] : 0, t, out, module, changes)
                             : Expected{value, 0});
    }
  const DeviceValues dy(y, dtype), dbias(bias, dtype);
  OutputCall call;
  call.dtype = dtype;
  for (int m = 0; m < 2; ++m) {
    const size_t at = m * s.outs[0] * size_of(dtype);
    call.slices[m] = {static_cast<std::byte*>(dy.data()) + at, stride,
                      s.biased ? static_cast<std::byte*>(dbias.data()) + at : nullptr, s.outs[m],
                      m};
  }
  // A linear that cannot have adapters.
  call.slices[2] = {dy.data(), stride, nullptr, s.outs[0], -1};
  call.slice_count = 3;
  call.tiles = tables.count();
  call.tables = tables.on_device();
  const std::string name = std::string("change_outputs ") + name_of(dtype) + " " +
                           std::to_string(s.tokens) + " " + std::to_string(s.outs[0]) + " " +
                           std::to_string(s.outs[1]) + (s.biased ? " biased" : "");
  if (group.launched(name, change_outputs(call, nullptr)))
    group.check(name, expected, dy, dtype, kInner);
}

void random_vocabulary_cases(Group& group, Dtype dtype, Random& random) {
  const auto between = [&](int low, int high) {
    return static_cast<int>(random.between(low, high));
  };
  const int unit = random.below(2) > 0 ? 8 : 1;
  const MatrixSizes sizes{between(1, 90), unit * between(1, 40), 16 * between(0, 3)};
  gather_case(group, dtype, sizes, between(1, 20));
  product_case(group, dtype, sizes, between(0, sizes.rows - 1), between(1, 10), between(0, 3),
               random.below(2) > 0);
  change_case(
      group, dtype,
      {between(1, 80), {between(1, 150), between(1, 150)}, between(0, 3), random.below(2) > 0});
}

}  // namespace

bool test_vocabulary(Dtype dtype, const Selection& selection) {
  Group group(std::string("vocabulary ") + name_of(dtype), selection);
  for (const MatrixSizes& s : {MatrixSizes{37, 8, 16},
                               {37, 3, 16},
                               {40, 5, 0},
                               {300, 64, 32},
                               {1, 1, 0},
                               {130, 896, 16},
                               {1200, 1000, 112}}) {
    for (const int count : {1, 23}) gather_case(group, dtype, s, count);
    for (const int tokens : {1, 4, 7}) {
      product_case(group, dtype, s, 0, tokens, 0, false);
      product_case(group, dtype, s, s.rows / 3, tokens, 5, true);
    }
  }
  for (const bool biased : {false, true}) {
    change_case(group, dtype, {1, {8, 300}, 0, biased});
    change_case(group, dtype, {70, {33, 128}, 3, biased});
    change_case(group, dtype, {300, {896, 129}, 8, biased});
  }
  Random random(selection.seed);
  for (int i = 0; i < selection.random_cases; ++i) random_vocabulary_cases(group, dtype, random);
  return group.finish();
}

}  // namespace valora::kernels::cuda
