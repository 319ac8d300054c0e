#include "engine/inspect/inspect.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numeric>

#include "engine/inspect/open_checkpoint.h"
#include "models/weights/checkpoint_weights.h"

namespace valora {
namespace {

struct Squares {
  double change = 0, weights = 0;
};

// |B A|² is the sum of the products of the elements of A Aᵀ and Bᵀ B, which are [rank, rank].
double squared_product(const adapters::LoraTarget& target) {
  const at::Tensor a = models::tensor_of(target.a).to(at::kDouble);
  const at::Tensor b = models::tensor_of(target.b).to(at::kDouble);
  const double squares = (a.mm(a.t()) * b.t().mm(b)).sum().item<double>();
  return squares * target.scale * target.scale;
}

Result<double> squared_weights(const models::CheckpointWeights& base, const std::string& module,
                               const adapters::LoraTarget& target) {
  const TensorView no_a{target.a.dtype, {0, target.a.shape[1]}, {}};
  const TensorView no_b{target.b.dtype, {target.b.shape[0], 0}, {}};
  VALORA_TRY(norms, base.row_norms(module, no_a, no_b, 0));
  return std::transform_reduce(norms.begin(), norms.end(), 0.0, std::plus(),
                               [](float norm) { return double{norm} * norm; });
}

bool is_linear_of(const adapters::Module& module, const std::string& part) {
  return module.kind == adapters::ModuleKind::kLinear && module.visual == (part == "vision");
}

Result<PartNorms> norms_of_part(const AdapterReport& report, const std::string& part,
                                const models::CheckpointWeights& base) {
  Squares squares;
  for (const adapters::LoraTarget& target : report.spec->targets) {
    const adapters::Module& module = report.modules.modules()[target.module];
    if (!is_linear_of(module, part)) continue;
    VALORA_TRY(weights, squared_weights(base, module.name, target));
    squares.change += squared_product(target);
    squares.weights += weights;
  }
  return PartNorms{part, std::sqrt(squares.change), std::sqrt(squares.weights)};
}

}  // namespace

Result<std::vector<PartNorms>> norms_of(const AdapterReport& report) {
  const auto checkpoint = open_checkpoint({report.model_path, report.mmproj});
  if (!checkpoint) return unprocessable(report.model_path + " has no complete checkpoint");
  const models::CheckpointWeights base(*checkpoint);
  std::vector<PartNorms> norms;
  for (const ChangedPart& part : report.changes) {
    VALORA_TRY(of_part, norms_of_part(report, part.name, base));
    norms.push_back(std::move(of_part));
  }
  return norms;
}

}  // namespace valora
