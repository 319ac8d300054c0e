#include <memory>

#include "kernels/cpu/linear/low_rank.h"
#include "lab/ops/adapter_copies.h"
#include "lab/ops/atmm_rivals.h"
#include "lab/ops/cycle.h"
#include "ops/device/cpu_types.h"
#include "ops/device/parallel.h"
#include "ops/lora/lora.h"

namespace valora::bench {
namespace {

using Segments = std::vector<kernels::LoraSegment>;

// The adapters of every layer in panels, and segments that refer to them.
struct Packed {
  std::vector<ops::AdapterWeights> adapters;  // ordered by layer
  Cycle<Segments> layers;

  static Packed of(const AtmmProblem& problem, int64_t rank_step) {
    std::vector<ops::AdapterWeights> weights;
    std::vector<Segments> layers;
    for (const auto& adapters : problem.layers) {
      const size_t first = weights.size();
      for (const AtmmAdapter& adapter : adapters)
        weights.push_back(panel_adapter({adapter.a, adapter.b}, rank_step, adapter.coefficient));
      Segments& segments = layers.emplace_back();
      for (const AtmmRun& run : problem.runs)
        segments.push_back({run.begin, run.end, weights[first + run.adapter].modules(), 1});
    }
    return {std::move(weights), Cycle(std::move(layers))};
  }
};

Contender panel_products(const AtmmProblem& problem, std::string name,
                         std::shared_ptr<Packed> packed, std::optional<kernels::CpuTile> tile) {
  const at::Tensor x = problem.x, y = problem.output(at::kFloat);
  return adding(std::move(name), y, [packed, x, y, tile] {
    kernels::low_rank<kernels::bf16>(ops::raw<kernels::bf16>(x), x.size(0), x.size(1),
                                     y.mutable_data_ptr<float>(), y.size(1), 0,
                                     packed->layers.next(), ops::torch_parallel(), tile);
  });
}

}  // namespace

Contender our_products(const AtmmProblem& problem, std::string name,
                       std::optional<kernels::CpuTile> tile) {
  return panel_products(problem, std::move(name), std::make_shared<Packed>(Packed::of(problem, 1)),
                        tile);
}

std::vector<Runner> tiled_products(const AtmmProblem& problem,
                                   const std::vector<kernels::CpuTile>& tiles) {
  const auto packed = std::make_shared<Packed>(Packed::of(problem, 1));
  std::vector<Runner> runners;
  for (const kernels::CpuTile& tile : tiles)
    runners.push_back({"", panel_products(problem, "", packed, tile).run});
  return runners;
}

Contender static_tile_products(const AtmmProblem& problem) {
  return panel_products(problem, "punica", std::make_shared<Packed>(Packed::of(problem, 64)),
                        kernels::CpuTile{16, 64 / kernels::kPanelOutputs, 1});
}

}  // namespace valora::bench
