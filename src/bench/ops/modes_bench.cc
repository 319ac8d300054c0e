#include "bench/ops/modes_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "bench/ops/random_tensors.h"
#include "ops/huge_memory.h"
#include "ops/lay_together.h"
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

// A linear, its weights with the first adapter merged in, and its part of every adapter.
struct Linear {
  ops::Weight base, merged;
  std::vector<ops::LoraWeight> adapters;
};

struct Layer {
  Linear q, k, v, o, gate, up, down;
};

template <typename AnyLayer>
auto linears_of(AnyLayer& l) {
  return std::array{&l.q, &l.k, &l.v, &l.o, &l.gate, &l.up, &l.down};
}

ops::Weight packed(int64_t out, int64_t in, int seed) {
  return ops::Weight(weight_tensor(out, in, at::kBFloat16, seed), at::kBFloat16, at::kCPU);
}

Linear make_linear(int64_t out, int64_t in, int64_t adapters, int seed) {
  Linear l;
  l.base = packed(out, in, seed);
  l.merged = l.base.with_data(ops::huge_zeros(l.base.data().numel(), at::kBFloat16));
  for (int64_t a = 0; a < adapters; ++a)
    l.adapters.push_back({packed(kRank, in, seed + 10 + static_cast<int>(a)),
                          packed(out, kRank, seed + 50 + static_cast<int>(a))});
  const ops::Merge merge{&l.base, &l.merged, &l.adapters.front(), kCoefficient};
  ops::merge({&merge, 1});
  return l;
}

// As the engine keeps them: each adapter in one memory.
void lay_adapters_together(std::vector<Layer>& layers, int64_t adapters) {
  for (int64_t a = 0; a < adapters; ++a) {
    std::vector<ops::Weight*> parts;
    for (Layer& l : layers)
      for (Linear* linear : linears_of(l))
        parts.insert(parts.end(), {&linear->adapters[a].a, &linear->adapters[a].b});
    ops::lay_together(parts);
  }
}

Layer make_layer(int64_t adapters) {
  return {
      make_linear(kHidden, kHidden, adapters, 1),   make_linear(kKeyWidth, kHidden, adapters, 2),
      make_linear(kKeyWidth, kHidden, adapters, 3), make_linear(kHidden, kHidden, adapters, 4),
      make_linear(kInner, kHidden, adapters, 5),    make_linear(kInner, kHidden, adapters, 6),
      make_linear(kHidden, kInner, adapters, 7)};
}

// Each token, or each even run of them, under the next adapter; all under the first where there is
// one.
std::vector<ops::LoraSegment> segments_of(std::initializer_list<const Linear*> linears,
                                          int64_t tokens, int64_t adapters) {
  std::vector<ops::LoraSegment> segments;
  for (int64_t a = 0; a < adapters; ++a) {
    ops::LoraSegment& segment = segments.emplace_back();
    segment.token_begin = tokens * a / adapters;
    segment.token_end = tokens * (a + 1) / adapters;
    size_t slice = 0;
    for (const Linear* l : linears) segment.parts[slice++] = {&l->adapters[a], kCoefficient};
  }
  return segments;
}

class Steps {
 public:
  explicit Steps(const ModeShape& shape)
      : x_(normal_tensor({shape.tokens, kHidden}, at::kBFloat16, 1, 3)), tokens_(shape.tokens) {
    for (int64_t i = 0; i < shape.layers; ++i) layers_.push_back(make_layer(adapters()));
    lay_adapters_together(layers_, adapters());
  }
  int64_t adapters() const { return std::min<int64_t>(8, tokens_); }

  // One step's linears; → the last layer's outputs. merged: over the merged weights; `adapters` 0:
  // no low-rank products.
  at::Tensor run(bool merged, int64_t adapters) const {
    at::Tensor y;
    for (const Layer& layer : layers_) {
      const auto weight = [&](const Linear& l) { return merged ? &l.merged : &l.base; };
      const auto segments = [&](std::initializer_list<const Linear*> linears) {
        return segments_of(linears, tokens_, adapters);
      };
      const ops::Weight* qkv[] = {weight(layer.q), weight(layer.k), weight(layer.v)};
      const std::vector<at::Tensor> heads =
          ops::project(x_, qkv, segments({&layer.q, &layer.k, &layer.v}));
      const at::Tensor attended = ops::linear(heads[0], *weight(layer.o), segments({&layer.o}));
      const at::Tensor inner = ops::gated(attended, *weight(layer.gate), *weight(layer.up),
                                          segments({&layer.gate, &layer.up}));
      y = ops::linear(inner, *weight(layer.down), segments({&layer.down}));
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
        for (const ops::LoraWeight& adapter : l->adapters)
          bytes += static_cast<double>(adapter.a.bytes() + adapter.b.bytes());
    return bytes;
  }

 private:
  at::Tensor x_;
  int64_t tokens_;
  std::vector<Layer> layers_;
};

Measurement measure_modes(Bench& bench, const ModeShape& shape) {
  const auto steps = std::make_shared<Steps>(shape);
  const int64_t adapters = steps->adapters();
  // Merged and unmerged are one function where all tokens have the merged adapter.
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
