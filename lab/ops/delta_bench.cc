#include "lab/ops/delta_bench.h"

#include <fmt/format.h>

#include <numeric>

#include "lab/ops/random_tensors.h"
#include "ops/delta/gated_delta.h"

namespace valora::bench {
namespace {

constexpr double kDeltaTolerance = 0.02;
constexpr int64_t kTaps = 4;

struct DeltaShape {
  int64_t batch, tokens, key_heads, value_heads, dim;  // tokens: per sequence

  int64_t rows() const { return batch * tokens; }
  kernels::StateShape state(int64_t layers) const {
    return {layers, (2 * key_heads + value_heads) * dim, kTaps, key_heads, value_heads, dim, dim,
            2};
  }
  // A lower bound, if everything else were free: per token, one product with the matrix to read it
  // by the key, one to read it by the query, and one to update it. The chunked form needs these
  // too, and more.
  double operations() const { return 6.0 * static_cast<double>(rows() * value_heads * dim * dim); }
  // Each state is read and written.
  double state_bytes() const { return 2.0 * static_cast<double>(batch * state(1).bytes()); }
};

// Tokens, weights, and states of the sequences for each of some layers.
class DeltaProblem {
 public:
  DeltaProblem(const DeltaShape& s, int64_t layers)
      : shape_(s.state(layers)),
        layout_(shape_, kernels::StateLayout::least_block_bytes(shape_)),
        arena_(ops::PoolMemory(static_cast<int32_t>(s.batch) * layout_.blocks(),
                               kernels::StateLayout::least_block_bytes(shape_), at::kCPU),
               layout_, at::kCPU),
        blocks_(static_cast<size_t>(s.batch * layout_.blocks())) {
    const auto rows = [&](int64_t width, uint64_t seed) {
      return normal_tensor({s.rows(), width}, at::kBFloat16, 1, seed);
    };
    const auto heads = [&](uint64_t seed) {
      return normal_tensor({s.value_heads}, at::kFloat, 1, seed);
    };
    tokens_ = {rows(shape_.channels, 1), rows(s.value_heads * s.dim, 2), rows(s.value_heads, 3),
               rows(s.value_heads, 4)};
    weights_ = {normal_tensor({kTaps, shape_.channels}, at::kBFloat16, 0.5, 5), heads(6).exp(),
                heads(7), normal_tensor({s.dim}, at::kBFloat16, 1, 8), 1e-6};
    std::iota(blocks_.begin(), blocks_.end(), 0);
    for (int64_t i = 0; i < s.batch; ++i) spans_.push_back({i * s.tokens, s.tokens, 0});
  }

  // Continues from the layer's states, or starts without any, and replaces them.
  at::Tensor step(int64_t layer, bool from_state) const {
    std::vector<kernels::StateSpan> states;
    for (size_t i = 0; i < spans_.size(); ++i) {
      const int32_t* list = blocks_.data() + i * static_cast<size_t>(layout_.blocks());
      states.push_back({from_state ? list : nullptr, list});
    }
    return ops::gated_delta(tokens_, weights_, arena_, layer, spans_, states);
  }
  at::Tensor chunks() const { return ops::sequence_gated_delta(tokens_, weights_, shape_, spans_); }

 private:
  kernels::StateShape shape_;
  kernels::StateLayout layout_;
  ops::StateArena arena_;
  std::vector<int32_t> blocks_;
  ops::DeltaTokens tokens_;
  ops::DeltaWeights weights_;
  std::vector<kernels::QuerySpan> spans_;
};

// ATen computes the chunked form of training.
Measurement measure_delta_prefill(Bench& bench, const DeltaShape& s) {
  const DeltaProblem problem(s, 1);
  return compete(bench, {0, s.operations(), Arithmetic::kFloat},
                 {pure(kOurs, [&] { return problem.step(0, false); }),
                  pure("aten", [&] { return problem.chunks(); })},
                 kDeltaTolerance);
}

Measurement measure_delta_decode(Bench& bench, const DeltaShape& s) {
  const int64_t layers = cold_copies(static_cast<int64_t>(s.state_bytes()) / 2);
  const DeltaProblem problem(s, layers);
  int64_t layer = 0;
  return time_in_turns(bench, {s.state_bytes(), s.operations(), Arithmetic::kFloat},
                       {pure(kOurs, [&] { return problem.step(layer++ % layers, true); })});
}

Shape delta_shape(const DeltaShape& s) {
  const bool decode = s.tokens == 1;
  return {decode ? "delta_decode" : "delta_prefill",
          fmt::format("heads {}/{}x{} batch {} tokens {}", s.value_heads, s.key_heads, s.dim,
                      s.batch, s.tokens),
          {{"heads", s.value_heads},
           {"key_heads", s.key_heads},
           {"dim", s.dim},
           {"batch", s.batch},
           {"tokens", s.rows()}},
          [=](Bench& bench) {
            return decode ? measure_delta_decode(bench, s) : measure_delta_prefill(bench, s);
          }};
}

}  // namespace

std::vector<Shape> delta_shapes(bool quick) {
  std::vector<Shape> shapes{delta_shape({1, 512, 16, 16, 128}), delta_shape({8, 1, 16, 16, 128})};
  if (quick) return shapes;
  for (const int64_t key_heads : {16, 8})  // 8: two value heads per key head, as in larger models
    for (const int64_t tokens : {64, 2048})
      shapes.push_back(delta_shape({1, tokens, key_heads, 16, 128}));
  shapes.push_back(delta_shape({1, 1, 16, 16, 128}));
  return shapes;
}

}  // namespace valora::bench
