// For tests: the operands of the cases, and reference products computed by ATen in double
// precision.
#pragma once

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <map>
#include <memory>
#include <tuple>

#include "ops/conformance/cases.h"
#include "ops/linear/linear.h"

namespace valora::ops::conformance {

// A shared sample of the standard normal distribution. The seed selects an offset into it, because
// drawing new numbers per tensor would dominate the run time. Larger tensors repeat the sample; its
// prime length keeps their rows different.
class Noise {
 public:
  at::Tensor take(int64_t rows, int64_t columns, uint64_t seed) const {
    const int64_t count = rows * columns;
    at::Tensor values = at::empty({rows, columns}, at::kFloat);
    at::Tensor flat = values.view(count);
    int64_t offset = static_cast<int64_t>(seed * 2654435761u % static_cast<uint64_t>(kNumbers));
    for (int64_t at = 0; at < count;) {
      const int64_t length = std::min(count - at, kNumbers - offset);
      flat.narrow(0, at, length).copy_(numbers_.narrow(0, offset, length));
      at += length;
      offset = 0;
    }
    return values;
  }

 private:
  static constexpr int64_t kNumbers = (int64_t{1} << 22) - 3;  // prime
  const at::Tensor numbers_ = at::randn({kNumbers}, at::make_generator<at::CPUGeneratorImpl>(9),
                                        at::TensorOptions(at::kFloat));
};

// Base weights and inputs of one size, rounded to the dtype under test, with their products x · wᵀ.
struct Base {
  std::vector<at::Tensor> weights;   // [out, in]
  at::Tensor x;                      // [most tokens, in]
  std::vector<at::Tensor> products;  // double [most tokens, out]

  // Standard deviations: inputs 1, weights 1 / √in, hence products 1.
  Base(int64_t in, const std::vector<int64_t>& outs, int64_t tokens, at::ScalarType dtype,
       const Noise& noise)
      : x(noise.take(tokens, in, 1).to(dtype)) {
    const at::Tensor wide = x.to(at::kDouble);
    for (size_t s = 0; s < outs.size(); ++s) {
      weights.push_back(
          noise.take(outs[s], in, 2 + s).mul_(1 / std::sqrt(static_cast<double>(in))).to(dtype));
      products.push_back(at::empty({tokens, outs[s]}, at::kDouble));
      constexpr int64_t kRows = 1024;  // rows at a time, to limit the memory of the double copy
      for (int64_t row = 0; row < outs[s]; row += kRows) {
        const int64_t count = std::min(kRows, outs[s] - row);
        products.back()
            .narrow(1, row, count)
            .copy_(at::mm(wide, weights.back().narrow(0, row, count).to(at::kDouble).t()));
      }
    }
  }
};

// One adapter on one linear, as plain tensors and as weights in the backend's layout.
struct LowRankPair {
  at::Tensor a, b;
  LoraWeight weight;
};

// The operands shared by the cases of one dtype and device.
class World {
 public:
  World(at::ScalarType dtype, at::Device device) : dtype_(dtype), device_(device) {}

  struct Linears {
    std::shared_ptr<const Base> base;
    std::vector<Weight> weights;
    at::Tensor x;  // on the device
  };
  const Linears& linears(const Case& c) {
    if (linears_.base && in_ == c.in && outs_ == c.outs && linears_.x.size(0) >= c.tokens)
      return linears_;
    pairs_.clear();
    linears_ = {};
    in_ = c.in;
    outs_ = c.outs;
    linears_.base = std::make_shared<const Base>(c.in, c.outs, std::max(c.tokens, most_tokens_),
                                                 dtype_, noise_);
    for (const at::Tensor& w : linears_.base->weights)
      linears_.weights.emplace_back(w, dtype_, device_);
    linears_.x = linears_.base->x.to(device_);
    return linears_;
  }
  // Makes the next base large enough for all cases that follow.
  void expect_tokens(int64_t tokens) { most_tokens_ = tokens; }

  // The pair's product has a standard deviation of kSpread. Adapters whose numbers are equal modulo
  // kDistinct have the same values.
  const LowRankPair& pair(int64_t in, int64_t out, int64_t rank, int adapter, size_t slice) {
    const auto [place, added] = pairs_.try_emplace({rank, out, adapter % kDistinct, slice});
    LowRankPair& pair = place->second;
    if (!added) return pair;
    const uint64_t seed = static_cast<uint64_t>(adapter % kDistinct) * 4 + slice;
    pair.a =
        noise_.take(rank, in, 10 + 2 * seed).mul(1 / std::sqrt(static_cast<double>(in))).to(dtype_);
    pair.b = noise_.take(out, rank, 11 + 2 * seed)
                 .mul(kSpread / std::sqrt(static_cast<double>(rank)))
                 .to(dtype_);
    pair.weight = {Weight(pair.a, dtype_, device_), Weight(pair.b, dtype_, device_)};
    return pair;
  }
  void forget_pairs() { pairs_.clear(); }
  size_t pairs() const { return pairs_.size(); }

 private:
  static constexpr int kDistinct = 12;
  static constexpr double kSpread = 0.5;

  at::ScalarType dtype_;
  at::Device device_;
  const Noise noise_;
  int64_t in_ = 0, most_tokens_ = 0;
  std::vector<int64_t> outs_;
  Linears linears_;
  std::map<std::tuple<int64_t, int64_t, int, size_t>, LowRankPair> pairs_;
};

}  // namespace valora::ops::conformance
