#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/testing/cases/cases.h"
#include "kernels/cuda/testing/report.h"

namespace valora::kernels::cuda {
namespace {

constexpr double kInner = 5e-6;

std::string label(Dtype dtype, std::initializer_list<int64_t> sizes, size_t shift) {
  std::string text = name_of(dtype);
  for (const int64_t n : sizes) text += " " + std::to_string(n);
  return shift > 0 ? text + " shifted" : text;
}

// x: [width]
void append_norm(const float* x, const std::vector<float>& w, float offset, float eps,
                 std::vector<Expected>& norms) {
  double squares = 0;
  for (size_t i = 0; i < w.size(); ++i) squares += std::pow(x[i], 2);
  const double factor = 1 / std::sqrt(squares / static_cast<double>(w.size()) + eps);
  for (size_t i = 0; i < w.size(); ++i) {
    const double value = x[i] * factor * (static_cast<double>(offset) + w[i]);
    norms.push_back({value, std::abs(value)});
  }
}

// size: magnitude of the values. offset: added to the weights.
void norm_case(Group& group, Dtype dtype, int rows, int width, bool add, size_t shift,
               float size = 3, float offset = 0) {
  if (!group.takes(static_cast<double>(rows) * width)) return;
  Random random(width * 7 + rows);
  const size_t count = static_cast<size_t>(rows) * width;
  std::vector<float> x = random.values(count, dtype, size);
  const std::vector<float> residual = random.values(count, dtype, size),
                           w = random.values(width, dtype);
  DeviceValues dx(x, dtype, shift), dr(residual, dtype, shift), dw(w, dtype, shift),
      out(count, dtype, shift);
  constexpr float kEps = 1e-6f;
  const std::string name = std::string(add ? "add_rms_norm " : "rms_norm ") +
                           label(dtype, {rows, width}, shift) + (offset != 0 ? " offset" : "");
  const int status = add ? add_rms_norm(dtype, dx.data(), dr.data(), dw.data(), offset, out.data(),
                                        rows, width, kEps, nullptr)
                         : rms_norm(dtype, {dx.data(), width, 1}, dw.data(), offset, out.data(),
                                    rows, width, kEps, nullptr);
  if (!group.launched(name, status)) return;
  if (add)
    for (size_t i = 0; i < count; ++i) x[i] = rounded(x[i] + residual[i], dtype);
  std::vector<Expected> norms;
  for (int r = 0; r < rows; ++r) append_norm(&x[r * width], w, offset, kEps, norms);
  group.check(name, norms, out, dtype, kInner);
  if (add) group.check_same(name + " sum", x, dx);
}

// Norms of each head, where the stride between tokens exceeds the size of their heads.
void head_norm_case(Group& group, Dtype dtype, int tokens, int heads, int width, int gap,
                    size_t shift, float offset = 0) {
  if (!group.takes(static_cast<double>(tokens) * heads * width)) return;
  Random random(width * 11 + tokens);
  const int stride = heads * width + gap;
  std::vector<float> x = random.values(static_cast<size_t>(tokens) * stride, dtype, 3);
  const std::vector<float> w = random.values(width, dtype);
  std::vector<Expected> norms;
  for (int t = 0; t < tokens; ++t) {
    for (int h = 0; h < heads; ++h)
      append_norm(&x[t * stride + h * width], w, offset, 1e-6f, norms);
    for (int i = heads * width; i < stride; ++i) x[t * stride + i] = NAN;
  }
  DeviceValues dx(x, dtype, shift), dw(w, dtype, shift), out(norms.size(), dtype, shift);
  const std::string name = "rms_norm of heads " + label(dtype, {tokens, heads, width, gap}, shift);
  const int status = rms_norm(dtype, {dx.data(), stride, heads}, dw.data(), offset, out.data(),
                              tokens, width, 1e-6f, nullptr);
  if (!group.launched(name, status)) return;
  group.check(name, norms, out, dtype, kInner);
  group.check_same(name + " input", x, dx);
}

void gelu_case(Group& group, Dtype dtype, int count, size_t shift) {
  if (!group.takes(count)) return;
  const std::vector<float> x = Random(count).values(count, dtype, 12);
  DeviceValues dx(x, dtype, shift), out(count, dtype, shift);
  const std::string name = "quick_gelu " + label(dtype, {count}, shift);
  if (!group.launched(name, quick_gelu(dtype, dx.data(), out.data(), count, nullptr))) return;
  std::vector<Expected> expected;
  for (const float v : x) {
    const double value = v / (1 + std::exp(-1.702 * v));
    expected.push_back({value, std::abs(value)});
  }
  group.check(name, expected, out, dtype, kInner);
}

// The argument of the gate's sigmoid: (1 + tanh(v)) / 2 is that of 2 · v.
double exponent(Gate gate, double x) {
  return gate == Gate::kSilu ? x : std::sqrt(8 / M_PI) * (x + 0.044715 * x * x * x);
}

void gate_case(Group& group, Gate gate, Dtype dtype, int rows, int width, int gap, size_t shift) {
  // Each row takes a block of 256 threads, however short it is.
  if (!group.takes(static_cast<double>(rows) * std::max(width, 64))) return;
  Random random(width + rows);
  const int stride = 2 * width + gap;
  const std::vector<float> x = random.values(static_cast<size_t>(rows) * stride, dtype, 8);
  DeviceValues dx(x, dtype, shift), out(static_cast<size_t>(rows) * width, dtype, shift);
  const std::string name = std::string("gate_mul ") + (gate == Gate::kSilu ? "silu " : "gelu ") +
                           label(dtype, {rows, width, gap}, shift);
  const void* up = static_cast<std::byte*>(dx.data()) + width * size_of(dtype);
  if (!group.launched(name, gate_mul(gate, dtype, dx.data(), stride, up, stride, out.data(), rows,
                                     width, nullptr)))
    return;
  std::vector<Expected> expected;
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < width; ++i) {
      const double g = x[r * stride + i], u = x[r * stride + width + i];
      const double v = exponent(gate, g), value = g / (1 + std::exp(-v)) * u;
      // The exponential has the error of its argument.
      expected.push_back({value, std::abs(value) * std::max(1.0, std::abs(v) / 8)});
    }
  group.check(name, expected, out, dtype, kInner);
}

struct RotateSizes {
  int tokens, heads, dim, gap, rotated = dim;
};

// Memory between rows must remain poison.
void rotate_case(Group& group, Dtype dtype, const RotateSizes& s, size_t shift) {
  if (!group.takes(static_cast<double>(s.tokens) * s.heads * s.dim)) return;
  Random random(s.tokens + s.dim);
  const int half = s.rotated / 2, stride = s.heads * s.dim + s.gap;
  std::vector<float> cos(s.tokens * half), sin(s.tokens * half);
  for (size_t i = 0; i < cos.size(); ++i) {
    const float angle = random.uniform(-3, 3);
    cos[i] = std::cos(angle), sin[i] = std::sin(angle);
  }
  std::vector<float> x = random.values(static_cast<size_t>(s.tokens) * stride, dtype);
  for (int t = 0; t < s.tokens; ++t)
    for (int i = s.heads * s.dim; i < stride; ++i) x[t * stride + i] = NAN;
  std::vector<Expected> expected;
  for (const float value : x) expected.push_back({value, 0});
  for (int t = 0; t < s.tokens; ++t)
    for (int h = 0; h < s.heads; ++h)
      for (int i = 0; i < half; ++i) {
        const size_t at = static_cast<size_t>(t) * stride + h * s.dim + i;
        const double a = x[at], b = x[at + half], c = cos[t * half + i], d = sin[t * half + i];
        expected[at] = {a * c - b * d, std::abs(a * c) + std::abs(b * d)};
        expected[at + half] = {b * c + a * d, std::abs(b * c) + std::abs(a * d)};
      }
  const DeviceValues dcos(cos, Dtype::kFloat), dsin(sin, Dtype::kFloat), dx(x, dtype, shift);
  const std::string name =
      "rotate_half " + label(dtype, {s.tokens, s.heads, s.dim, s.gap, s.rotated}, shift);
  const int status =
      rotate_half(dtype, {dx.data(), stride, s.heads}, static_cast<const float*>(dcos.data()),
                  static_cast<const float*>(dsin.data()), s.tokens, s.dim, s.rotated, nullptr);
  if (!group.launched(name, status)) return;
  group.check(name, expected, dx, dtype, kInner);
}

int size_between(Random& random, int low, int high) {
  return static_cast<int>(random.between(low, high));
}

void random_cases(Group& group, Dtype dtype, Random& random) {
  const size_t shift = random.below(4) > 0 ? 0 : size_of(dtype);
  const int unit = random.below(2) > 0 ? 8 : 1;
  norm_case(group, dtype, size_between(random, 1, 4), unit * size_between(random, 1, 300),
            random.below(2) > 0, shift, 3, random.below(2) > 0 ? 1 : 0);
  head_norm_case(group, dtype, size_between(random, 1, 4), size_between(random, 1, 5),
                 unit * size_between(random, 1, 40), unit * size_between(random, 0, 9), shift,
                 random.below(2) > 0 ? 1 : 0);
  gelu_case(group, dtype, size_between(random, 1, 2000), shift);
  gate_case(group, random.below(2) > 0 ? Gate::kSilu : Gate::kGeluTanh, dtype,
            size_between(random, 1, 5), unit * size_between(random, 1, 100),
            random.below(2) > 0 ? 8 : 0, shift);
  RotateSizes sizes{size_between(random, 1, 6), size_between(random, 1, 9),
                    2 * size_between(random, 1, 60), size_between(random, 0, 2) * unit};
  if (random.below(3) == 0) sizes.rotated = 2 * size_between(random, 1, sizes.dim / 2);
  rotate_case(group, dtype, sizes, shift);
}

}  // namespace

bool test_elementwise(Dtype dtype, const Selection& selection) {
  bool passed = true;
  const size_t element = size_of(dtype);
  Group norm(std::string("norm ") + name_of(dtype), selection);
  for (const bool add : {false, true}) {
    for (const int width : {1, 7, 8, 64, 100, 896, 1000, 3584, 3585, 8192, 20000})
      norm_case(norm, dtype, 5, width, add, 0);
    norm_case(norm, dtype, 3, 896, add, element);
    norm_case(norm, dtype, 3, 20000, add, element);
    norm_case(norm, dtype, 700, 128, add, 0);
    norm_case(norm, dtype, 4, 72, add, 0, 1e-3f);  // small values, so that epsilon matters
    for (const int width : {100, 896, 20000}) norm_case(norm, dtype, 3, width, add, 0, 3, 1);
  }
  for (const size_t shift : {size_t{0}, element}) {
    head_norm_case(norm, dtype, 1, 4, 64, 384, shift);
    head_norm_case(norm, dtype, 5, 3, 128, 8, shift);
    head_norm_case(norm, dtype, 4, 2, 10, 3, shift);
    head_norm_case(norm, dtype, 3, 2, 64, 64, shift, 1);
  }
  passed = norm.finish() && passed;
  Group activations(std::string("activations ") + name_of(dtype), selection);
  for (const int count : {1, 8, 17, 4096, 100003}) gelu_case(activations, dtype, count, 0);
  gelu_case(activations, dtype, 4096, element);
  for (const Gate gate : {Gate::kSilu, Gate::kGeluTanh})
    for (const int width : {1, 8, 24, 33, 4864}) {
      gate_case(activations, gate, dtype, 3, width, 0, 0);
      gate_case(activations, gate, dtype, 2, width, 8, element);
    }
  gate_case(activations, Gate::kSilu, dtype, 67000, 8, 0, 0);
  passed = activations.finish() && passed;
  Group rotate(std::string("rotate ") + name_of(dtype), selection);
  for (const RotateSizes& s : {RotateSizes{1, 14, 64, 0},
                               {33, 28, 128, 8},
                               {5, 4, 8, 0},
                               {3, 3, 10, 3},
                               {9, 4, 80, 0},
                               {2, 1, 2, 1},
                               {7, 8, 256, 0, 64},
                               {5, 3, 32, 8, 12},
                               {3, 2, 20, 0, 8},
                               {300, 14, 64, 128}}) {
    rotate_case(rotate, dtype, s, 0);
    rotate_case(rotate, dtype, s, element);
  }
  passed = rotate.finish() && passed;
  Group mixed(std::string("random elementwise ") + name_of(dtype), selection);
  Random random(selection.seed);
  for (int i = 0; i < selection.random_cases; ++i) random_cases(mixed, dtype, random);
  return mixed.finish() && passed;
}

}  // namespace valora::kernels::cuda
