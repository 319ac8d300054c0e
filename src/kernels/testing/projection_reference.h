// For tests: reference projections in double precision, and comparisons with the kernels' results.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "kernels/cpu/isa/kernel_set.h"
#include "kernels/cpu/linear/project.h"
#include "kernels/cpu/product/integer_panels.h"
#include "kernels/testing/guarded.h"
#include "kernels/types/lora_module_map.h"

namespace valora::kernels::testing_support {

template <typename T>
Guarded<T> random_values(size_t count, uint32_t seed, float scale = 1) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0, scale);
  Guarded<T> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = from_float<T>(normal(rng));
  return values;
}

template <typename T>
Guarded<T> values_of(const std::vector<float>& values) {
  Guarded<T> result(values.size());
  for (size_t i = 0; i < values.size(); ++i) result[i] = from_float<T>(values[i]);
  return result;
}

template <typename T>
Guarded<T> packed(const Guarded<T>& w, int64_t n, int64_t k) {
  Guarded<T> panels(packed_elements<T>(n, k));
  pack_panels(w.data(), n, k, panels.data());
  return panels;
}

// A matrix and its panels, which are also stored in separate pieces if panels_per_piece > 0.
template <typename T>
struct Matrix {
  int64_t n, k;
  Guarded<T> values, packed_values;
  std::vector<Guarded<T>> places;
  std::vector<const T*> pieces;
  int64_t per_piece;

  Matrix(int64_t n_, int64_t k_, uint32_t seed, float scale, int64_t panels_per_piece)
      : n(n_),
        k(k_),
        values(random_values<T>(n * k, seed, scale)),
        packed_values(packed(values, n, k)),
        per_piece(panels_per_piece) {
    if (per_piece == 0) return;
    for (int64_t first = 0; first < panels_of(n); first += per_piece) {
      const int64_t count = std::min(per_piece, panels_of(n) - first);
      places.emplace_back(static_cast<size_t>(count * panel_elements<T>(k)));
      std::copy_n(packed_values.data() + first * panel_elements<T>(k), places.back().size(),
                  places.back().data());
    }
    for (const auto& place : places) pieces.push_back(place.data());
  }
  Panels<T> panels() const {
    if (pieces.empty()) return {packed_values.data(), n, k, nullptr, 0};
    return {nullptr, n, k, pieces.data(), per_piece};
  }
  LoraFactor factor() const {
    if (pieces.empty()) return {packed_values.data(), nullptr, 0};
    return {nullptr, reinterpret_cast<const void* const*>(pieces.data()), per_piece};
  }
};

struct Use {
  int64_t begin, end;
  std::vector<int64_t> ranks;  // per slice; 0: slice not adapted
  float coefficient;
};

struct Case {
  int64_t m = 0, k = 0;
  std::vector<int64_t> outs;     // per slice
  int64_t x_gap = 0, y_gap = 0;  // padding elements between rows
  bool bias = false;
  bool unrounded = false;  // check y_float
  std::optional<Gate> gate = {};
  std::vector<Use> uses = {};
  int64_t panels_per_piece = 0;  // of the adapters; 0: contiguous
  // The weights: integers unless bits is 0.
  int bits = 0;
  int64_t group = 0;
  bool zeros = false, float_scales = false, minimums = false;
  int64_t input_block = 0;  // inputs per scale of x in 8 bits; 0: x is not rounded
  std::optional<RowRounding> row_rounding = {};
};

// A sum in double, and the sum of its terms' magnitudes, to which fp32 errors are proportional.
struct Reference {
  double sum = 0, magnitude = 0;
};

inline constexpr double kFp32Error = 2e-6;          // relative to the magnitude
inline constexpr double kBf16Rounding = 1.0 / 255;  // half an ulp (8-bit significand)
inline constexpr float kUntouched = -77;

template <typename T>
void add_row(const T* x, const T* w, int64_t k, Reference& r) {
  for (int64_t i = 0; i < k; ++i) {
    const double term = double(to_float(x[i])) * double(to_float(w[i]));
    r.sum += term;
    r.magnitude += std::abs(term);
  }
}

// An integer weight, its panels and its decoded parts.
struct IntegerMatrix {
  IntegerPanels panels;
  Guarded<uint8_t> bytes;
  std::vector<uint8_t> values, zeros;
  std::vector<float> scales, minimums;  // zeros or minimums are 0
  int64_t groups;

  IntegerMatrix(const Case& c, int64_t n, uint32_t seed)
      : panels(integer_layout(n, c.k, c.bits, c.group, c.float_scales, c.zeros, c.minimums)),
        bytes(static_cast<size_t>(integer_bytes(panels))),
        values(n * c.k),
        groups((c.k + panels.group - 1) / panels.group) {
    std::mt19937 rng(seed);
    for (uint8_t& value : values) value = static_cast<uint8_t>(rng() % (1u << c.bits));
    for (int64_t i = 0; i < n * groups; ++i) {
      const uint32_t usual = c.minimums ? 0 : 1u << (c.bits - 1);
      zeros.push_back(static_cast<uint8_t>(c.zeros ? rng() % (1u << c.bits) : usual));
      minimums.push_back(c.minimums ? (static_cast<float>(rng() % 1000) - 600) / 300 : 0);
      const float scale = (static_cast<float>(rng() % 1000) - 300) / 4000;
      scales.push_back(c.float_scales ? scale : to_float(from_float<bf16>(scale)));
    }
    pack_integers(panels, values.data(), {scales.data(), zeros.data(), minimums.data()},
                  bytes.data(), serial_for);
    panels.data = bytes.data();
    panels.input_block = c.input_block;
    panels.row_rounding = c.row_rounding;
  }
  // Adds x · w for one output. The magnitude allows for kernels that sum integers and zero-points
  // separately. rounded: the slack allows for decoded weights in bf16.
  template <typename T>
  void add_row(const T* x, int64_t output, bool rounded, Reference& r, double& slack) const {
    const int low = panels.bits == 8 ? 128 : 0;
    for (int64_t i = 0; i < panels.k; ++i) {
      const int64_t part = output * groups + i / panels.group;
      const int value = values[output * panels.k + i], zero = zeros[part];
      const double input = to_float(x[i]), scaled = input * double(scales[part]),
                   least = input * double(minimums[part]);
      const double term = scaled * (value - zero) + least;
      r.sum += term;
      if (rounded) slack += kBf16Rounding * std::abs(term);
      r.magnitude +=
          std::abs(scaled) * (std::abs(value - low) + std::abs(zero - low)) + std::abs(least);
    }
  }
  // The same with x rounded to 8 bits. An input near the midpoint of two integers may round to
  // either.
  template <typename T>
  void add_rounded_row(const T* x, int64_t output, Reference& r, double& slack) const {
    for (int64_t begin = 0; begin < panels.k; begin += panels.input_block) {
      const int64_t end = std::min(panels.k, begin + panels.input_block);
      double largest = 0;
      for (int64_t i = begin; i < end; ++i)
        largest = std::max(largest, std::abs(double(to_float(x[i]))));
      const double scale = panels.row_rounding && panels.row_rounding->scale != 0
                               ? double(panels.row_rounding->scale)
                               : largest / (panels.row_rounding ? 127.5 : 127);
      const double low = panels.row_rounding ? -128 : -127;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t part = output * groups + i / panels.group;
        const int value = values[output * panels.k + i], zero = zeros[part];
        const double exact = scale == 0 ? 0 : std::clamp(to_float(x[i]) / scale, low, 127.0),
                     rounded = std::nearbyint(exact), unit = scale * double(scales[part]);
        const double least = scale * double(minimums[part]), weight = unit * (value - zero) + least;
        r.sum += rounded * weight;
        r.magnitude += std::abs(rounded) * (std::abs(unit) * (value + zero) + std::abs(least));
        if (std::abs(std::abs(exact - rounded) - 0.5) < 1e-4) slack += std::abs(weight);
      }
    }
  }
};

template <typename T>
struct Adapter {
  const Use* use;
  std::vector<std::unique_ptr<Matrix<T>>> a, b;
  LoraModuleMap modules{kMaxSlices};  // by slice

  // Adds the factors for one more slice.
  void add(int64_t rank, int64_t in, int64_t out, uint32_t seed, uint32_t seed_b,
           int64_t panels_per_piece) {
    a.push_back(std::make_unique<Matrix<T>>(rank, in, seed, 0.2f, panels_per_piece));
    b.push_back(std::make_unique<Matrix<T>>(out, rank, seed_b, 0.2f, panels_per_piece));
    if (rank > 0)
      modules.add(static_cast<int>(a.size()) - 1) = {
          a.back()->factor(), b.back()->factor(), rank, in, out, kScale};
  }
  // Divides the use's coefficient between the segment's coefficient and the module's scale.
  LoraSegment segment() const {
    return {use->begin, use->end, modules.view(), use->coefficient / kScale};
  }
  static constexpr float kScale = 0.5f;
};

// The intermediate is rounded to T. fp32 and double results may round differently by one unit in
// the last place, hence the slack.
template <typename T>
void add_low_rank(const Adapter<T>& adapter, size_t slice, const T* x, int64_t output, Reference& r,
                  double& slack) {
  const Matrix<T>& a = *adapter.a[slice];
  const Matrix<T>& b = *adapter.b[slice];
  for (int64_t i = 0; i < a.n; ++i) {
    Reference low;
    add_row(x, &a.values[i * a.k], a.k, low);
    const double rounded =
        to_float(from_float<T>(static_cast<float>(adapter.use->coefficient * low.sum)));
    const double term = rounded * to_float(b.values[output * a.n + i]);
    r.sum += term;
    r.magnitude += std::abs(term);
    const double unit = sizeof(T) == 2
                            ? std::abs(rounded) / 128
                            : kFp32Error * low.magnitude * std::abs(adapter.use->coefficient);
    slack += unit * std::abs(to_float(b.values[output * a.n + i]));
  }
}

// Neither activation has a slope above 1.13.
inline double activated(Gate gate, double x) {
  if (gate == Gate::kSilu) return x / (1 + std::exp(-x));
  return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

// Checks the outputs of a projection. expected_sum(token, slice, output, slack) is a linear's sum
// before gating and rounding; it adds the permitted difference to slack.
template <typename T, typename ExpectedSum>
void expect_outputs(const Case& c, std::vector<Guarded<T>>& ys,
                    std::vector<Guarded<float>>& ys_float, const ExpectedSum& expected_sum) {
  const size_t written = c.gate ? 1 : c.outs.size();
  for (size_t s = 0; s < c.outs.size(); ++s) {
    const int64_t ldy = c.outs[s] + c.y_gap, size = c.m * ldy - c.y_gap;
    for (int64_t i = 0; i < size; ++i) {
      const int64_t t = i / ldy, o = i % ldy;
      const double got = c.unrounded ? ys_float[s][i] : to_float(ys[s][i]);
      if (o >= c.outs[s] || s >= written) {
        ASSERT_EQ(got, kUntouched)
            << "slice " << s << " row " << t << " column " << o << " is nobody's";
        continue;
      }
      double slack = 0, expected = expected_sum(t, s, o, slack);
      if (c.gate) {
        double up_slack = 0;
        const double up = expected_sum(t, 1, o, up_slack);
        const double gated = activated(*c.gate, expected);
        slack =
            1.13 * slack * std::abs(up) + up_slack * std::abs(gated) + 1e-6 * std::abs(gated * up);
        expected = gated * up;
      }
      const double rounding =
          !c.unrounded && sizeof(T) == 2 ? kBf16Rounding * std::abs(expected) : 0;
      ASSERT_NEAR(got, expected, rounding + slack + 1e-30)
          << "slice " << s << " row " << t << " column " << o;
    }
  }
}

// One for each use, on all linears of the case.
template <typename T>
std::vector<Adapter<T>> adapters_of(const Case& c) {
  std::vector<Adapter<T>> adapters;
  for (size_t u = 0; u < c.uses.size(); ++u) {
    const Use& use = c.uses[u];
    Adapter<T>& adapter = adapters.emplace_back(Adapter<T>{&use, {}, {}});
    for (size_t s = 0; s < c.outs.size(); ++s) {
      const uint32_t seed = static_cast<uint32_t>(50 + 10 * u + s);
      adapter.add(use.ranks[s], c.k, c.outs[s], seed, seed + 5, c.panels_per_piece);
    }
  }
  return adapters;
}

template <typename T>
void expect_projection(const Case& c, const ParallelFor& parallel = serial_for) {
  SCOPED_TRACE(::testing::Message()
               << "m " << c.m << " k " << c.k << " outs " << ::testing::PrintToString(c.outs)
               << " gaps " << c.x_gap << ", " << c.y_gap << " bias " << c.bias << " uses "
               << c.uses.size() << " per piece " << c.panels_per_piece << " bytes " << sizeof(T)
               << " bits " << c.bits << " group " << c.group << " zeros " << c.zeros
               << " float scales " << c.float_scales << " minimums " << c.minimums
               << " input block " << c.input_block << " row rounding "
               << (c.row_rounding ? c.row_rounding->scale : -1));
  const int64_t ldx = c.k + c.x_gap;
  // The last row has no gap after it, so that it ends at the guard page.
  const auto x = random_values<T>(c.m * ldx - c.x_gap, 1, 0.3f);
  std::vector<std::unique_ptr<Matrix<T>>> weights;
  std::vector<std::unique_ptr<IntegerMatrix>> integers;
  std::vector<Guarded<float>> biases;
  std::vector<Guarded<T>> ys;
  std::vector<Guarded<float>> ys_float;
  std::vector<Slice<T>> slices;
  for (size_t s = 0; s < c.outs.size(); ++s) {
    const int64_t n = c.outs[s], ldy = n + c.y_gap;
    weights.push_back(std::make_unique<Matrix<T>>(n, c.k, 2 + s, 1.f, 0));
    biases.push_back(random_values<float>(n, 30 + s));
    ys.emplace_back(static_cast<size_t>(c.unrounded ? 0 : c.m * ldy - c.y_gap));
    ys_float.emplace_back(static_cast<size_t>(c.unrounded ? c.m * ldy - c.y_gap : 0));
    std::fill_n(ys.back().data(), ys.back().size(), from_float<T>(kUntouched));
    std::fill_n(ys_float.back().data(), ys_float.back().size(), kUntouched);
    slices.push_back({weights.back()->panels(), c.bias ? biases.back().data() : nullptr,
                      ys.back().data(), c.unrounded ? ys_float.back().data() : nullptr, ldy,
                      static_cast<int>(s)});
    if (c.bits == 0) continue;
    integers.push_back(std::make_unique<IntegerMatrix>(c, n, 70 + s));
    slices.back().w.data = nullptr;
    slices.back().integers = &integers.back()->panels;
  }
  const std::vector<Adapter<T>> adapters = adapters_of<T>(c);
  std::vector<LoraSegment> segments;
  for (const Adapter<T>& adapter : adapters) segments.push_back(adapter.segment());
  project<T>(x.data(), c.m, ldx, slices, segments, c.gate, parallel);

  const bool rounded = c.m > kernel_set<T>().integer_rows && !kernel_set<T>().float_inputs;
  const auto expected_sum = [&](int64_t t, size_t s, int64_t o, double& slack) {
    Reference r;
    if (c.input_block > 0)
      integers[s]->add_rounded_row(&x[t * ldx], o, r, slack);
    else if (c.bits > 0)
      integers[s]->add_row(&x[t * ldx], o, rounded, r, slack);
    else
      add_row(&x[t * ldx], &weights[s]->values[o * c.k], c.k, r);
    if (c.bias) r.sum += biases[s][o], r.magnitude += std::abs(biases[s][o]);
    for (const Adapter<T>& adapter : adapters)
      if (t >= adapter.use->begin && t < adapter.use->end)
        add_low_rank(adapter, s, &x[t * ldx], o, r, slack);
    slack += kFp32Error * r.magnitude;
    return r.sum;
  };
  expect_outputs<T>(c, ys, ys_float, expected_sum);
}

}  // namespace valora::kernels::testing_support
