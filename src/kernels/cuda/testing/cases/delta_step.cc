#include "kernels/cuda/testing/cases/delta_step.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace valora::kernels::cuda {
namespace {

// Elements between rows.
int gap_of(const DeltaSizes& sizes) { return sizes.taps % 2 == 0 ? 8 : 3; }

size_t place_at(const DeltaStep& step, const int32_t* list, int64_t part) {
  const StatePlace& place = step.places[static_cast<size_t>(part)];
  return static_cast<size_t>(list[place.block]) * step.block_bytes + place.offset;
}

// Values of the rows of spans, NaN elsewhere.
std::vector<float> rows_of(const DeltaStep& step, int64_t width, int64_t stride, float size,
                           Random& random) {
  std::vector<float> values(static_cast<size_t>(step.tokens * stride), NAN);
  for (const QuerySpan& span : step.spans)
    for (int64_t t = span.begin; t < span.begin + span.queries; ++t) {
      const std::vector<float> row =
          random.values(static_cast<size_t>(width), step.sizes.dtype, size);
      std::ranges::copy(row, values.begin() + t * stride);
    }
  return values;
}

void fill_state(DeltaStep& step, const int32_t* list, Random& random) {
  const StateShape& s = step.shape;
  for (int64_t row = 0; row + 1 < s.taps; ++row) {
    const auto values = random.values(static_cast<size_t>(s.channels), step.sizes.dtype, 2);
    pack(values.data(), values.size(), step.sizes.dtype, &step.pool[step.window_at(list, row)]);
  }
  for (int64_t head = 0; head < s.value_heads; ++head) {
    std::vector<float> matrix(static_cast<size_t>(head_floats(s)), 0.0f);
    for (size_t i = 0; i < matrix.size(); ++i) {
      const int64_t tile = static_cast<int64_t>(i) / (kStateTile * s.key_dim);
      const int64_t column = tile * kStateTile + static_cast<int64_t>(i) % kStateTile;
      if (column < s.value_dim) matrix[i] = random.uniform(-1, 1);
    }
    std::memcpy(&step.pool[step.matrix_at(list, head)], matrix.data(),
                matrix.size() * sizeof(float));
  }
}

// Two layers' parts, one after the other, in blocks in which the largest and a little more fits.
void make_places(DeltaStep& step) {
  const StateShape& s = step.shape;
  const auto whole = [](size_t bytes) { return (bytes + 63) / 64 * 64; };
  const size_t row = whole(static_cast<size_t>(s.channels) * s.element),
               matrix = whole(static_cast<size_t>(head_floats(s)) * sizeof(float));
  step.block_bytes = std::max(row, matrix) + 64;
  size_t used = step.block_bytes;
  for (int64_t part = 0; part < 2 * (s.taps - 1 + s.value_heads); ++part) {
    const bool second = part >= s.taps - 1 + s.value_heads;
    const bool window = (second ? part - s.taps + 1 - s.value_heads : part) < s.taps - 1;
    const size_t bytes = window ? row : matrix;
    if (used + bytes > step.block_bytes) ++step.state_blocks, used = 0;
    if (second) step.places.push_back({step.state_blocks - 1, static_cast<uint32_t>(used)});
    used += bytes;
  }
}

// Lists of blocks in random order, of which no two share one.
void make_lists(DeltaStep& step, size_t count, Random& random) {
  const auto each = static_cast<size_t>(step.state_blocks);
  std::vector<int32_t> order(count * each + 3);
  std::iota(order.begin(), order.end(), 0);
  random.shuffle(order);
  for (size_t i = 0; i < count; ++i)
    step.lists.emplace_back(order.begin() + static_cast<int64_t>(i * each),
                            order.begin() + static_cast<int64_t>((i + 1) * each));
  step.pool.assign(order.size() * step.block_bytes, std::byte{0xff});
}

void make_states(DeltaStep& step, Random& random) {
  size_t count = 0, next = 0;
  for (const DeltaSizes::Span& span : step.sizes.spans) count += 2 + span.kept.size();
  make_lists(step, count, random);
  const auto list = [&] { return step.lists[next++].data(); };
  for (const DeltaSizes::Span& span : step.sizes.spans) {
    StateSpan state{.to = list()};
    if (span.from == DeltaSizes::From::kOwn) state.from = state.to;
    if (span.from == DeltaSizes::From::kOther) state.from = list();
    if (state.from) fill_state(step, state.from, random);
    for (size_t k = 0; k < span.kept.size(); ++k) state.kept[k] = {list(), span.kept[k]};
    step.states.push_back(state);
  }
}

std::string name_of(const DeltaSizes& s) {
  std::string name = cuda::name_of(s.dtype);
  for (const int n : {s.taps, s.key_heads, s.value_heads, s.key_dim, s.value_dim})
    name += " " + std::to_string(n);
  for (const DeltaSizes::Span& span : s.spans)
    name += " " + std::to_string(span.rows) + "/" + std::to_string(static_cast<int>(span.from)) +
            "/" + std::to_string(span.kept.size());
  return s.shifted ? name + " shifted" : name;
}

// The input of the convolution in a span's row t, which may be before its first.
double input_at(const DeltaStep& step, size_t i, int64_t t, int64_t channel) {
  if (t >= 0)
    return step.x[static_cast<size_t>((step.spans[i].begin + t) * step.x_stride + channel)];
  if (!step.states[i].from) return 0;
  const size_t size = size_of(step.sizes.dtype);
  const std::byte* row = &step.pool[step.window_at(step.states[i].from, step.shape.taps - 1 + t)];
  std::vector<std::byte> bytes(row + channel * static_cast<int64_t>(size),
                               row + (channel + 1) * static_cast<int64_t>(size));
  return unpack(bytes, step.sizes.dtype)[0];
}

void convolve(const DeltaStep& step, size_t i, ExpectedDelta& expected) {
  const StateShape& s = step.shape;
  for (int64_t t = 0; t < step.spans[i].queries; ++t)
    for (int64_t c = 0; c < s.channels; ++c) {
      double sum = 0, size = 0;
      for (int64_t tap = 0; tap < s.taps; ++tap) {
        const double term = input_at(step, i, t - s.taps + 1 + tap, c) *
                            step.weights[static_cast<size_t>(tap * s.channels + c)];
        sum += term, size += std::abs(term);
      }
      const auto at = static_cast<size_t>((step.spans[i].begin + t) * s.channels + c);
      const double value = sum / (1 + std::exp(-sum));
      expected.convolved[at] = {value, size};
      expected.qkv[at] = rounded(static_cast<float>(value), step.sizes.dtype);
    }
}

std::vector<double> unit(const float* x, int64_t n, double scale) {
  double squares = 1e-6;
  for (int64_t i = 0; i < n; ++i) squares += double{x[i]} * x[i];
  std::vector<double> y;
  for (int64_t i = 0; i < n; ++i) y.push_back(x[i] * scale / std::sqrt(squares));
  return y;
}

// A head's matrix, [key_dim, value_dim] in double.
class HeadRule {
 public:
  HeadRule(const DeltaStep& step, size_t i, int64_t head)
      : step_(step), s_(step.shape), head_(head) {
    matrix_.assign(static_cast<size_t>(s_.key_dim * s_.value_dim), 0);
    if (!step.states[i].from) return;
    std::vector<float> values(static_cast<size_t>(head_floats(s_)));
    std::memcpy(values.data(), &step.pool[step.matrix_at(step.states[i].from, head)],
                values.size() * sizeof(float));
    for (int64_t k = 0; k < s_.key_dim; ++k)
      for (int64_t c = 0; c < s_.value_dim; ++c) at(k, c) = values[stored(k, c)];
  }

  void run_row(int64_t token, ExpectedDelta& expected) {
    const float* row = &expected.qkv[static_cast<size_t>(token * s_.channels)];
    const int64_t keys = s_.key_heads * s_.key_dim,
                  key_head = head_ / (s_.value_heads / s_.key_heads);
    const auto q = unit(row + key_head * s_.key_dim, s_.key_dim, 1 / std::sqrt(double(s_.key_dim))),
               k = unit(row + keys + key_head * s_.key_dim, s_.key_dim, 1);
    const float* v = row + 2 * keys + head_ * s_.value_dim;
    const auto rate_at = static_cast<size_t>(token * step_.rate_stride + head_);
    const double a = double{step_.a[rate_at]} + step_.bias[static_cast<size_t>(head_)],
                 decay =
                     std::exp(-step_.rate[static_cast<size_t>(head_)] * std::log1p(std::exp(a))),
                 beta = 1 / (1 + std::exp(-double{step_.b[rate_at]}));
    std::vector<Expected> outputs;
    for (int64_t c = 0; c < s_.value_dim; ++c) {
      double memory = 0;
      for (int64_t i = 0; i < s_.key_dim; ++i) memory += (at(i, c) *= decay) * k[i];
      Expected output;
      for (int64_t i = 0; i < s_.key_dim; ++i) {
        const double term = (at(i, c) += k[i] * beta * (v[c] - memory)) * q[i];
        output.value += term, output.size += std::abs(term);
      }
      outputs.push_back(output);
    }
    gate(token, outputs, expected);
  }

  std::vector<Expected> stored_matrix() const {
    std::vector<Expected> values(static_cast<size_t>(head_floats(s_)));
    double largest = 0;
    for (const double value : matrix_) largest = std::max(largest, std::abs(value));
    for (int64_t k = 0; k < s_.key_dim; ++k)
      for (int64_t c = 0; c < s_.value_dim; ++c)
        values[stored(k, c)] = {matrix_[static_cast<size_t>(k * s_.value_dim + c)], largest};
    return values;
  }

 private:
  double& at(int64_t k, int64_t c) { return matrix_[static_cast<size_t>(k * s_.value_dim + c)]; }
  size_t stored(int64_t k, int64_t c) const {
    return static_cast<size_t>((c / kStateTile * s_.key_dim + k) * kStateTile + c % kStateTile);
  }
  void gate(int64_t token, const std::vector<Expected>& outputs, ExpectedDelta& expected) const {
    double squares = 0, size = 0;
    for (const Expected& o : outputs) squares += o.value * o.value, size = std::max(size, o.size);
    const double factor = 1 / std::sqrt(squares / static_cast<double>(s_.value_dim) + kEps);
    for (int64_t c = 0; c < s_.value_dim; ++c) {
      const int64_t place = head_ * s_.value_dim + c;
      const double z = step_.z[static_cast<size_t>(token * step_.z_stride + place)];
      const double scale = factor * step_.norm[static_cast<size_t>(c)] * z / (1 + std::exp(-z));
      expected.out[static_cast<size_t>(token * s_.value_heads * s_.value_dim + place)] = {
          outputs[static_cast<size_t>(c)].value * scale, std::abs(scale) * size};
    }
  }

  static constexpr double kEps = 1e-6f;
  const DeltaStep& step_;
  const StateShape& s_;
  int64_t head_;
  std::vector<double> matrix_;
};

// The state with this list after `after` rows of span i, without its matrices.
ExpectedDelta::State windowed(const DeltaStep& step, size_t i, const int32_t* list, int64_t after) {
  const StateShape& s = step.shape;
  ExpectedDelta::State state{list, {}, {}};
  for (int64_t row = 0; row + 1 < s.taps; ++row) {
    std::vector<float> values;
    for (int64_t c = 0; c < s.channels; ++c)
      values.push_back(static_cast<float>(input_at(step, i, after - s.taps + 1 + row, c)));
    state.window.emplace_back(values.size() * size_of(step.sizes.dtype));
    pack(values.data(), values.size(), step.sizes.dtype, state.window.back().data());
  }
  return state;
}

}  // namespace

StateShape DeltaSizes::shape() const {
  return {2,           int64_t{2} * key_heads * key_dim + int64_t{value_heads} * value_dim,
          taps,        key_heads,
          value_heads, key_dim,
          value_dim,   size_of(dtype)};
}

double DeltaSizes::work() const {
  double rows = 2;
  for (const Span& span : spans) rows += span.rows + 1;
  // Of the emulation: a row of a block is as much as some hundreds of elements.
  return rows * value_heads * (3.0 * (key_dim + 16) * (value_dim + 32) + shape().channels);
}

size_t DeltaStep::window_at(const int32_t* list, int64_t row) const {
  return place_at(*this, list, row);
}
size_t DeltaStep::matrix_at(const int32_t* list, int64_t head) const {
  return place_at(*this, list, shape.taps - 1 + head);
}

DeltaStep make_delta_step(const DeltaSizes& sizes) {
  Random random(static_cast<uint64_t>(sizes.key_dim * 31 + sizes.value_dim + sizes.taps));
  DeltaStep step{.sizes = sizes, .shape = sizes.shape()};
  step.name = "gated_delta " + name_of(sizes);
  const StateShape& s = step.shape;
  make_places(step);
  int64_t begin = 1;
  for (size_t i = 0; i < sizes.spans.size(); ++i) {
    if (i == 2) ++begin;
    step.spans.push_back({begin, sizes.spans[i].rows});
    begin += sizes.spans[i].rows;
  }
  step.tokens = begin;
  make_states(step, random);
  const int64_t values = s.value_heads * s.value_dim, gap = gap_of(sizes);
  step.x_stride = s.channels + gap, step.z_stride = values + gap;
  step.rate_stride = s.value_heads + gap;
  step.x = rows_of(step, s.channels, step.x_stride, 2, random);
  step.z = rows_of(step, values, step.z_stride, 3, random);
  step.a = rows_of(step, s.value_heads, step.rate_stride, 3, random);
  step.b = rows_of(step, s.value_heads, step.rate_stride, 3, random);
  step.weights = random.values(static_cast<size_t>(s.taps * s.channels), sizes.dtype);
  step.norm = random.values(static_cast<size_t>(s.value_dim), sizes.dtype, 2);
  step.bias = random.values(static_cast<size_t>(s.value_heads), Dtype::kFloat);
  for (int64_t head = 0; head < s.value_heads; ++head) step.rate.push_back(random.uniform(0, 0.6f));
  return step;
}

ExpectedDelta expected_delta(const DeltaStep& step) {
  const StateShape& s = step.shape;
  ExpectedDelta expected;
  expected.convolved.assign(static_cast<size_t>(step.tokens * s.channels), {NAN, 0});
  expected.qkv.assign(expected.convolved.size(), NAN);
  expected.out.assign(static_cast<size_t>(step.tokens * s.value_heads * s.value_dim), {NAN, 0});
  for (size_t i = 0; i < step.spans.size(); ++i) {
    convolve(step, i, expected);
    const size_t first = expected.states.size();
    std::vector<int64_t> ends;
    const auto add = [&](const int32_t* list, int64_t after) {
      expected.states.push_back(windowed(step, i, list, after));
      ends.push_back(after);
    };
    for (const StateSpan::Kept& kept : step.states[i].kept)
      if (kept.blocks) add(kept.blocks, kept.after);
    add(step.states[i].to, step.spans[i].queries);
    for (int64_t head = 0; head < s.value_heads; ++head) {
      HeadRule rule(step, i, head);
      int64_t row = 0;
      for (size_t k = 0; k < ends.size(); ++k) {
        for (; row < ends[k]; ++row) rule.run_row(step.spans[i].begin + row, expected);
        expected.states[first + k].matrices.push_back(rule.stored_matrix());
      }
    }
  }
  return expected;
}

}  // namespace valora::kernels::cuda
