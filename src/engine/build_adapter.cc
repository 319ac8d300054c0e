#include "engine/build_adapter.h"

#include "engine/adapter_tensors.h"
#include "engine/merge_bound.h"
#include "models/weights.h"

namespace valora {
namespace {

// Copied: the file may be overwritten, or the name unloaded, while requests use the values.
at::Tensor tensor(const TensorView& view, at::ScalarType dtype, at::Device device) {
  return models::tensor_of(view).to(at::TensorOptions().dtype(dtype).device(device),
                                    /*non_blocking=*/false, /*copy=*/true);
}

ops::AdapterWeights own_weights(const adapters::AdapterSpec& spec, size_t modules,
                                at::ScalarType dtype, at::Device device) {
  ops::AdapterWeights weights(modules);
  for (const adapters::LoraTarget& target : spec.targets)
    weights.set(target.module,
                {ops::Weight(tensor(target.a, dtype, device), dtype, device),
                 ops::Weight(tensor(target.b, dtype, device), dtype, device)},
                target.scale);
  weights.pack_contiguous();
  return weights;
}

}  // namespace

Result<std::shared_ptr<serving::LoadedAdapter>> build_adapter(
    std::shared_ptr<const adapters::AdapterSpec> shared, const adapters::ModuleTable& modules,
    at::ScalarType dtype, at::Device device, AdapterStore* store) {
  const adapters::AdapterSpec& spec = *shared;
  auto loaded = std::make_shared<serving::LoadedAdapter>();
  loaded->digest = spec.digest;
  loaded->has_weights = !spec.targets.empty();
  loaded->rank = spec.max_rank;
  for (const adapters::LoraTarget& target : spec.targets)
    (modules.modules()[target.module].visual ? loaded->on_visuals : loaded->on_decoder) = true;
  if (store && loaded->has_weights) {
    VALORA_TRY(stored, store->add(shared));
    loaded->need = stored.need;
    loaded->tensors = std::make_shared<AdapterTensors>(stored.weights);
    loaded->safe_to_merge = stored.safe_to_merge;
  } else {
    loaded->safe_to_merge = std::make_shared<std::atomic<bool>>(safe_to_merge(spec, modules));
    loaded->tensors = std::make_shared<AdapterTensors>(std::make_shared<const ops::AdapterWeights>(
        own_weights(spec, modules.modules().size(), dtype, device)));
  }
  for (const adapters::TaskHead& head : spec.heads)
    loaded->heads.push_back(
        {head.name, head.labels, head.problem_type, head.add_generation_prompt,
         std::make_shared<HeadTensors>(
             tensor(head.weight, at::kFloat, device),
             head.bias ? tensor(*head.bias, at::kFloat, device) : at::Tensor())});
  return loaded;
}

}  // namespace valora
