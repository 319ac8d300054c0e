#include "bench/ops/modes_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "bench/ops/random_tensors.h"
#include "ops/huge_memory.h"
#include "ops/linear.h"
#include "ops/merge.h"

namespace valora::bench {
namespace {

constexpr double kTolerance = 0.03;
constexpr float kCoefficient = 0.5;
constexpr int64_t kHidden = 896, kKeyWidth = 128, kInner = 4864, kRank = 16;  // a 0.5 B decoder

struct ModeShape {
  int64_t layers, tokens;
};

// A linear, and its weights with the first adapter merged in.
struct Linear {
  ops::Weight base, merged;
  int module;
};

struct Layer {
  Linear q, k, v, o, gate, up, down;
};
constexpr int kLayerLinears = 7;

template <typename AnyLayer>
auto linears_of(AnyLayer& l) {
  return std::array{&l.q, &l.k, &l.v, &l.o, &l.gate, &l.up, &l.down};
}

ops::Weight packed(int64_t out, int64_t in, int seed) {
  return ops::Weight(weight_tensor(out, in, at::kBFloat16, seed), at::kBFloat16, at::kCPU);
}

Layer make_layer(int first_module) {
  int module = first_module;
  const auto make = [&](int64_t out, int64_t in) {
    const ops::Weight base = packed(out, in, module - first_module + 1);
    return Linear{base, base.with_data(ops::huge_zeros(base.data().numel(), at::kBFloat16)),
                  module++};
  };
  // Braces guarantee this order of evaluation.
  return {make(kHidden, kHidden), make(kKeyWidth, kHidden), make(kKeyWidth, kHidden),
          make(kHidden, kHidden), make(kInner, kHidden),    make(kInner, kHidden),
          make(kHidden, kInner)};
}

// An adapter on every linear, in one allocation as in the engine.
ops::AdapterWeights make_adapter(std::vector<Layer>& layers, int number) {
  ops::AdapterWeights adapter(layers.size() * kLayerLinears);
  for (Layer& layer : layers)
    for (const Linear* l : linears_of(layer)) {
      const int seed = l->module % kLayerLinears + 1 + number;
      adapter.set(l->module,
                  {packed(kRank, l->base.in(), seed + 10), packed(l->base.out(), kRank, seed + 50)},
                  1);
    }
  adapter.lay_together();
  return adapter;
}

class Steps {
 public:
  explicit Steps(const ModeShape& shape)
      : x_(normal_tensor({shape.tokens, kHidden}, at::kBFloat16, 1, 3)), tokens_(shape.tokens) {
    for (int64_t i = 0; i < shape.layers; ++i)
      layers_.push_back(make_layer(static_cast<int>(i) * kLayerLinears));
    for (int64_t a = 0; a < adapters(); ++a)
      adapters_.push_back(make_adapter(layers_, static_cast<int>(a)));
    merge_first_adapter();
  }
  int64_t adapters() const { return std::min<int64_t>(8, tokens_); }

  // Runs the linears of one step and returns the outputs of the last layer. merged: uses the merged
  // weights. adapters: 0 means no low-rank products.
  at::Tensor run(bool merged, int64_t adapters) const {
    const ops::LoraBatch lora = segments(adapters);
    at::Tensor y;
    for (const Layer& layer : layers_) {
      const auto module = [&](const Linear& l) {
        return ops::ModuleWeight{merged ? &l.merged : &l.base, l.module};
      };
      const ops::ModuleWeight qkv[] = {module(layer.q), module(layer.k), module(layer.v)};
      const std::vector<at::Tensor> heads = ops::project(x_, qkv, lora);
      const at::Tensor attended = ops::linear(heads[0], module(layer.o), lora);
      const at::Tensor inner = ops::gated(attended, module(layer.gate), module(layer.up), lora);
      y = ops::linear(inner, module(layer.down), lora);
    }
    return y;
  }

  Work base_work() const {
    Work work;
    for (const Layer& layer : layers_)
      for (const Linear* l : linears_of(layer)) {
        work.bytes += static_cast<double>(l->base.bytes());
        work.operations += 2.0 * static_cast<double>(tokens_ * l->base.out() * l->base.in());
      }
    return work;
  }
  double adapter_bytes() const {
    double bytes = 0;
    for (const Layer& layer : layers_)
      for (const Linear* l : linears_of(layer))
        for (const ops::AdapterWeights& adapter : adapters_)
          bytes += static_cast<double>(adapter.find(l->module)->a.bytes() +
                                       adapter.find(l->module)->b.bytes());
    return bytes;
  }

 private:
  // Distributes the tokens evenly over the adapters, in runs.
  ops::LoraBatch segments(int64_t adapters) const {
    ops::LoraBatch lora;
    for (int64_t a = 0; a < adapters; ++a)
      lora.add(tokens_ * a / adapters, tokens_ * (a + 1) / adapters, adapters_[a], kCoefficient);
    return lora;
  }
  void merge_first_adapter() {
    std::vector<ops::Merge> merges;
    for (Layer& layer : layers_)
      for (const Linear* l : linears_of(layer))
        merges.push_back({&l->base, &l->merged, adapters_.front().find(l->module), kCoefficient});
    ops::merge(merges);
  }

  at::Tensor x_;
  int64_t tokens_;
  std::vector<Layer> layers_;
  std::vector<ops::AdapterWeights> adapters_;
};

Measurement measure_modes(Bench& bench, const ModeShape& shape) {
  const auto steps = std::make_shared<Steps>(shape);
  const int64_t adapters = steps->adapters();
  // Merged and unmerged agree if all tokens use the merged adapter.
  check_alike({pure("merged", [=] { return steps->run(true, 0); }),
               pure("unmerged, one adapter", [=] { return steps->run(false, 1); })},
              kTolerance);
  const Work work = steps->base_work();
  Measurement m = time_in_turns(bench, work,
                                {pure("base", [=] { return steps->run(false, 0); }),
                                 pure("merged", [=] { return steps->run(true, 0); }),
                                 pure("unmerged", [=] { return steps->run(false, adapters); })});
  bench.notes[fmt::format("modes_bytes_more_{}_tokens", shape.tokens)] =
      steps->adapter_bytes() / work.bytes;
  return m;
}

}  // namespace

std::vector<Shape> mode_shapes(bool quick) {
  std::vector<ModeShape> list{{24, 1}, {24, 8}, {24, 512}};
  if (quick) list = {{6, 8}};
  std::vector<Shape> shapes;
  for (const ModeShape& s : list)
    shapes.push_back({"modes",
                      fmt::format("0.5B {} layers tokens {} rank {}", s.layers, s.tokens, kRank),
                      {{"layers", s.layers}, {"tokens", s.tokens}, {"rank", kRank}},
                      [s](Bench& bench) { return measure_modes(bench, s); }});
  return shapes;
}

}  // namespace valora::bench
