#include <cmath>
#include <string>

#include "kernels/cuda/integer_product.h"
#include "kernels/cuda/testing/cases/cases.h"
#include "kernels/cuda/testing/cases/integers.h"
#include "kernels/cuda/testing/report.h"
#include "kernels/cuda/testing/threads.h"

namespace valora::kernels::cuda {
namespace {

constexpr double kInner = 5e-6;

struct ProductCase {
  int tokens = 1, in = 64;
  std::vector<IntegerForm> forms;  // one per slice
  bool bias = false;
  bool sums = false, y = true;  // the requested results
  int gap = 0;                  // between rows, of both y and x
  bool shifted = false;         // neither x nor y is aligned
  int strips = 0;
};

std::string describe(Dtype dtype, const ProductCase& c) {
  std::string text = std::string(name_of(dtype)) + " tokens " + std::to_string(c.tokens) + " in " +
                     std::to_string(c.in);
  for (const IntegerForm& form : c.forms) text += ", " + describe(form);
  if (c.bias) text += ", bias";
  if (c.sums) text += ", sums";
  if (!c.y) text += " alone";
  if (c.strips > 0) text += ", strips " + std::to_string(c.strips);
  if (c.gap > 0) text += ", gaps of " + std::to_string(c.gap);
  return c.shifted ? text + ", shifted" : text;
}

// x: [tokens, in + gap]
std::vector<Expected> products(const ProductCase& c, const Integers& w, const std::vector<float>& x,
                               const std::vector<float>& bias) {
  const int out = w.form.out;
  std::vector<Expected> y(static_cast<size_t>(c.tokens) * out);
  for_each_index(c.tokens, [&](int64_t t) {
    for (int o = 0; o < out; ++o) {
      Expected& e = y[t * out + o];
      if (c.bias) e = {bias[o], std::abs(bias[o])};
      for (int i = 0; i < c.in; ++i) {
        const double term = w.value(o, i) * x[t * (c.in + c.gap) + i];
        e.value += term,
            e.size += std::abs(term) + 0.1 * std::abs(w.least(o, i) * x[t * (c.in + c.gap) + i]);
      }
    }
  });
  return y;
}

// Adds the gaps between rows, which must stay poisoned.
std::vector<Expected> with_gaps(const std::vector<Expected>& y, int out, int gap) {
  std::vector<Expected> rows;
  for (size_t i = 0; i < y.size(); ++i) {
    rows.push_back(y[i]);
    if ((i + 1) % out == 0) rows.insert(rows.end(), gap, Expected{NAN, 0});
  }
  return rows;
}

void product_case(Group& group, Dtype dtype, const ProductCase& c) {
  double work = 0;
  for (const IntegerForm& form : c.forms)
    work += static_cast<double>(c.tokens + 8) * form.out * c.in;
  if (!group.takes(work)) return;
  const std::string name = describe(dtype, c);
  Random random(c.tokens * 7 + c.in + c.forms[0].out);
  const size_t shift = c.shifted ? size_of(dtype) : 0;
  std::vector<float> x = random.values(static_cast<size_t>(c.tokens) * (c.in + c.gap), dtype);
  for (int t = 0; t < c.tokens; ++t)
    for (int i = c.in; i < c.in + c.gap; ++i) x[t * (c.in + c.gap) + i] = NAN;
  const DeviceValues dx(x, dtype, shift);
  IntegerCall call{.dtype = dtype,
                   .x = dx.data(),
                   .x_stride = c.in + c.gap,
                   .tokens = c.tokens,
                   .in = c.in,
                   .slices = {},
                   .slice_count = static_cast<int32_t>(c.forms.size())};
  call.strips = c.strips;
  std::vector<Integers> weights;
  std::vector<DeviceMemory> memory;
  std::vector<std::vector<float>> biases;
  std::vector<DeviceValues> of_bias, ys, sums;
  for (size_t i = 0; i < c.forms.size(); ++i) {
    const int out = c.forms[i].out;
    weights.push_back(random_integers(c.forms[i], c.in, random));
    memory.push_back(upload(weights[i]));
    biases.push_back(random.values(out, dtype));
    of_bias.emplace_back(biases[i], dtype);
    ys.emplace_back(static_cast<size_t>(c.tokens) * (out + c.gap), dtype, shift);
    sums.emplace_back(static_cast<size_t>(c.tokens) * out, Dtype::kFloat);
    IntegerSlice& slice = call.slices[i];
    slice.w = weights[i].matrix;
    slice.w.data = memory[i].data();
    if (c.bias) slice.bias = of_bias[i].data();
    if (c.y) slice.y = ys[i].data();
    slice.y_stride = out + c.gap;
    if (c.sums) slice.sums = static_cast<float*>(sums[i].data());
  }
  if (!group.launched(name, integer_product(call, nullptr))) return;
  for (size_t i = 0; i < c.forms.size(); ++i) {
    const auto y = products(c, weights[i], x, biases[i]);
    const std::string which = name + ", slice " + std::to_string(i);
    if (c.y) group.check(which, with_gaps(y, c.forms[i].out, c.gap), ys[i], dtype, kInner);
    if (c.sums) group.check(which + " sums", y, sums[i], Dtype::kFloat, kInner);
    group.check(which + " memory", memory[i].guards_intact(), "written outside of it");
  }
}

IntegerForm random_form(Random& random, int in) {
  IntegerForm form;
  form.bits = random.below(2) > 0 ? 4 : 8;
  form.out = static_cast<int>(random.between(1, 150));
  const int groups[] = {32, 64, 96, 128, in};
  form.group = groups[random.below(5)];
  const Dtype scales[] = {Dtype::kFloat, Dtype::kBf16, Dtype::kFp16};
  form.scales = scales[random.below(3)];
  form.minimums = random.below(4) == 0;
  form.zeros = !form.minimums && random.below(2) > 0;
  return form;
}

void random_case(Group& group, Dtype dtype, Random& random) {
  ProductCase c;
  c.tokens = static_cast<int>(random.between(1, random.below(3) > 0 ? 36 : 140));
  c.in = static_cast<int>(random.between(1, 40)) * (random.below(4) > 0 ? 8 : 3);
  const int slices = static_cast<int>(random.between(1, kMaxIntegerSlices));
  for (int i = 0; i < slices; ++i) c.forms.push_back(random_form(random, c.in));
  c.bias = random.below(2) > 0;
  c.y = random.below(6) > 0;
  c.sums = !c.y || random.below(2) > 0;
  c.gap = random.below(3) > 0 ? 0 : static_cast<int>(random.below(3)) * 8;
  c.shifted = random.below(6) == 0;
  c.strips = static_cast<int>(random.below(3));
  product_case(group, dtype, c);
}

// Tests each kind of groups, with token counts for each kernel.
void kinds(Group& group, Dtype dtype) {
  for (const int bits : {4, 8})
    for (const int tokens : {1, 7, 9, 16, 17, 32, 33, 64, 65}) {
      const IntegerForm form{.bits = bits, .out = 40, .group = 32, .scales = Dtype::kFp16};
      product_case(group, dtype, {tokens, 136, {form}});
      IntegerForm other = form;
      other.zeros = true, other.group = 64, other.scales = Dtype::kFloat;
      product_case(group, dtype, {tokens, 328, {other}, true, true});
      other.zeros = false, other.minimums = true, other.scales = Dtype::kBf16;
      product_case(group, dtype, {tokens, 136, {other}});
    }
}

}  // namespace

bool test_integers(Dtype dtype, const Selection& selection) {
  Group group(std::string("integers ") + name_of(dtype), selection);
  kinds(group, dtype);
  const IntegerForm four{
      .bits = 4, .out = 256, .group = 128, .scales = Dtype::kBf16, .zeros = true},
      eight{.bits = 8, .out = 64, .group = 128, .scales = Dtype::kBf16},
      rows{.bits = 8, .out = 33, .group = 1000};  // one group of all inputs
  product_case(group, dtype, {3, 1000, {four, eight, rows}, true});
  product_case(group, dtype, {70, 1000, {four, eight, rows}, true, true, true, 8});
  product_case(group, dtype, {2, 33, {{.bits = 4, .out = 21, .group = 32, .zeros = true}}});
  product_case(group, dtype, {5, 64, {eight}, false, true, false});
  product_case(group, dtype, {9, 64, {eight}, false, false, true, 0, true});
  product_case(group, dtype, {5, 64, {eight}, false, false, true, 3});
  product_case(group, dtype, {4, 4864, {{.bits = 4, .out = 16, .group = 32}}});
  for (const int strips : {1, 2})
    for (const int out : {120, 250})
      for (const bool minimums : {false, true})
        product_case(group, dtype,
                     {.tokens = 70,
                      .in = 264,
                      .forms = {{.bits = minimums ? 8 : 4,
                                 .out = out,
                                 .group = 96,
                                 .zeros = !minimums,
                                 .minimums = minimums}},
                      .strips = strips});
  Random random(selection.seed);
  for (int i = 0; i < selection.random_cases; ++i) random_case(group, dtype, random);
  return group.finish();
}

}  // namespace valora::kernels::cuda
