#include "lab/ops/modes_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "lab/ops/decoder_linears.h"
#include "ops/device/huge_memory.h"
#include "ops/merge/merge.h"

namespace valora::bench {
namespace {

constexpr double kModesTolerance = 0.03;
constexpr float kEvenCoefficient = 0.5;  // of even_segments()
constexpr int64_t kRank = 16;

struct ModeShape {
  int64_t layers, tokens;
};

class Steps {
 public:
  explicit Steps(const ModeShape& shape)
      : x_(decoder_input(shape.tokens)), base_(make_decoder(shape.layers)), merged_(base_) {
    for (int a = 0; a < std::min<int64_t>(8, shape.tokens); ++a)
      adapters_.push_back(make_adapter(base_, kRank, a));
    merge_first_adapter();
  }
  int64_t adapters() const { return static_cast<int64_t>(adapters_.size()); }

  // Runs the linears of one step and returns the last layer's outputs. merged: use the merged
  // weights. adapters: number of adapters; 0: no low-rank products.
  at::Tensor run(bool merged, int64_t adapters) const {
    const auto in_use = std::span(adapters_).first(static_cast<size_t>(adapters));
    return run_linears(merged ? merged_ : base_, x_, even_segments(x_.size(0), in_use));
  }

  Work base_work() const { return work_of(base_, x_.size(0)); }
  double adapter_bytes() const {
    double bytes = 0;
    for (const DecoderLayer& layer : base_)
      for (const DecoderLinear* l : layer.linears())
        for (const ops::AdapterWeights& adapter : adapters_)
          bytes += static_cast<double>(adapter.find(l->module)->a.bytes() +
                                       adapter.find(l->module)->b.bytes());
    return bytes;
  }

 private:
  void merge_first_adapter() {
    std::vector<ops::Merge> merges;
    for (size_t i = 0; i < base_.size(); ++i) {
      const auto from = base_[i].linears();
      const auto to = merged_[i].linears();
      for (size_t j = 0; j < from.size(); ++j) {
        const ops::Weight& base = from[j]->weight;
        to[j]->weight = base.with_data(ops::huge_zeros(base.data().numel(), at::kBFloat16));
        merges.push_back(
            {&base, &to[j]->weight, &adapters_.front(), from[j]->module, kEvenCoefficient});
      }
    }
    ops::merge(merges);
  }

  at::Tensor x_;
  std::vector<DecoderLayer> base_, merged_;  // merged_: with the first adapter merged
  std::vector<ops::AdapterWeights> adapters_;
};

Measurement measure_modes(Bench& bench, const ModeShape& shape) {
  const auto steps = std::make_shared<Steps>(shape);
  const int64_t adapters = steps->adapters();
  // Merged and unmerged agree if all tokens use the merged adapter.
  check_alike({pure("merged", [=] { return steps->run(true, 0); }),
               pure("unmerged, one adapter", [=] { return steps->run(false, 1); })},
              kModesTolerance);
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
