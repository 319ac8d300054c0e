#include <algorithm>
#include <memory>

#include "lab/ops/atmm_rivals.h"
#include "lab/ops/cycle.h"

namespace valora::bench {
namespace {

// All adapters of a layer as two tensors, and a mask that selects each token's adapter.
struct Stacked {
  at::Tensor a;     // [adapters, rank, in]
  at::Tensor b;     // [adapters, rank, out]
  at::Tensor mask;  // [tokens, adapters, 1]: coefficient of the token's adapter, else 0
};

Stacked stack(const AtmmProblem& problem, const std::vector<AtmmAdapter>& adapters) {
  int64_t rank = 0;
  for (const AtmmAdapter& adapter : adapters) rank = std::max(rank, adapter.a.size(0));
  const int64_t count = problem.adapters();
  Stacked stacked{at::zeros({count, rank, problem.shape.hidden}, problem.x.options()), {}, {}};
  stacked.b = at::zeros_like(stacked.a);
  stacked.mask = at::zeros({problem.shape.tokens(), count, 1}, problem.x.options());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t own = adapters[i].a.size(0);
    stacked.a.select(0, i).narrow(0, 0, own).copy_(adapters[i].a);
    stacked.b.select(0, i).narrow(0, 0, own).copy_(adapters[i].b.t());
  }
  for (const AtmmRun& run : problem.runs)
    stacked.mask.narrow(0, run.begin, run.end - run.begin)
        .select(1, static_cast<int64_t>(run.adapter))
        .fill_(adapters[run.adapter].coefficient);
  return stacked;
}

}  // namespace

Contender aten_products(const AtmmProblem& problem) {
  const auto layers = std::make_shared<Cycle<std::vector<AtmmAdapter>>>(problem.layers);
  const at::Tensor y = problem.output(at::kBFloat16);
  return adding("aten", y, [&problem, layers, y] {
    const std::vector<AtmmAdapter>& adapters = layers->next();
    for (const AtmmRun& run : problem.runs) {
      const AtmmAdapter& adapter = adapters[run.adapter];
      const at::Tensor low =
          at::linear(problem.x.narrow(0, run.begin, run.end - run.begin), adapter.a);
      y.narrow(0, run.begin, run.end - run.begin)
          .add_(at::linear(low, adapter.b), adapter.coefficient);
    }
  });
}

Contender einsum_products(const AtmmProblem& problem) {
  std::vector<Stacked> stacks;
  for (const auto& adapters : problem.layers) stacks.push_back(stack(problem, adapters));
  const auto layers = std::make_shared<Cycle<Stacked>>(std::move(stacks));
  const at::Tensor x = problem.x, y = problem.output(at::kBFloat16);
  return adding("dlora", y, [layers, x, y] {
    const Stacked& s = layers->next();
    const at::Tensor low = at::einsum("ti,nri->tnr", {x, s.a}) * s.mask;
    y.add_(at::einsum("tnr,nro->to", {low, s.b}));
  });
}

}  // namespace valora::bench
