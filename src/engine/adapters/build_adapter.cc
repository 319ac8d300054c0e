#include "engine/adapters/build_adapter.h"

#include <algorithm>

#include "adapters/folder/adapter_parts.h"
#include "engine/adapters/adapter_tensors.h"
#include "engine/adapters/rank_share.h"
#include "models/weights/weights.h"
#include "serving/adapters/changed_parts.h"

namespace valora {
namespace {

// A copy, because the file may be overwritten or the adapter unloaded while requests use it.
at::Tensor tensor(const TensorView& view, at::ScalarType dtype, at::Device device) {
  return models::tensor_of(view).to(at::TensorOptions().dtype(dtype).device(device),
                                    /*non_blocking=*/false, /*copy=*/true);
}

ops::AdapterWeights own_weights(const adapters::AdapterSpec& spec,
                                const adapters::ModuleTable& modules, at::ScalarType dtype,
                                at::Device device) {
  ops::AdapterWeights weights(modules.modules().size());
  for (const adapters::LoraTarget& target : spec.targets)
    weights.set(target.module,
                {ops::Weight(tensor(target.a, dtype, device), dtype, device),
                 ops::Weight(tensor(target.b, dtype, device), dtype, device)},
                target.scale);
  RankShare(modules, 0, 1).set_outputs(spec, weights);
  weights.pack_contiguous();
  return weights;
}

// A part with its own memory, outside the pool.
Result<std::shared_ptr<const ops::PlacedMatrix>> own_part(const adapters::AdapterSpec& spec,
                                                          const adapters::AdapterPart& part,
                                                          const adapters::AdapterLimits& limits,
                                                          at::ScalarType dtype, at::Device device) {
  const at::Tensor values =
      at::empty({part.rows, part.columns}, at::TensorOptions().dtype(dtype).device(device));
  VALORA_CHECK(adapters::read_part(
      {spec.path, spec.root}, part, limits, [&](int64_t first, const TensorView& rows) -> Status {
        values.narrow(0, first, rows.shape[0]).copy_(models::tensor_of(rows));
        return {};
      }));
  return std::make_shared<const ops::PlacedMatrix>(values);
}

using Parts = std::vector<std::shared_ptr<const ops::PlacedMatrix>>;

ops::VocabularyWeights vocabulary_of(const adapters::VocabularyChange& change, const Parts& parts) {
  const auto part = [&](int index) { return index < 0 ? nullptr : parts.at(index); };
  return {part(change.embedding),
          part(change.embedding_lora),
          part(change.embedding_rows),
          part(change.head),
          part(change.head_rows),
          part(change.head_lora),
          change.scale,
          change.head_scale,
          change.embedding_gain,
          change.embedding_ids,
          change.head_ids,
          change.tokens};
}

// Sets which parts of the model the adapter changes.
void set_reach(const adapters::AdapterSpec& spec, const adapters::ModuleTable& modules,
               serving::LoadedAdapter& loaded) {
  const auto reach = [&](int index) {
    const adapters::Module& module = modules.modules()[index];
    if (module.kind == adapters::ModuleKind::kLinear)
      (module.visual ? loaded.on_visuals : loaded.on_decoder) = true;
  };
  for (const adapters::LoraTarget& target : spec.targets) reach(target.module);
  for (const adapters::OutputValues& shift : spec.shifts) reach(shift.module);
}

}  // namespace

Result<std::shared_ptr<serving::LoadedAdapter>> build_adapter(
    std::shared_ptr<const adapters::AdapterSpec> shared, const adapters::ModuleTable& modules,
    at::ScalarType dtype, at::Device device, const adapters::AdapterLimits& limits,
    AdapterStore* store, const std::vector<std::shared_ptr<const HeadTensors>>& heads,
    const MergeBound& merges) {
  const adapters::AdapterSpec& spec = *shared;
  auto loaded = std::make_shared<serving::LoadedAdapter>();
  loaded->digest = spec.digest;
  loaded->has_weights = !spec.targets.empty() || !spec.parts.empty() || !spec.shifts.empty();
  loaded->replaces = spec.replaces;
  loaded->rank = spec.max_rank;
  loaded->invocation = spec.invocation;
  set_reach(spec, modules, *loaded);
  loaded->changes = serving::changed_parts(spec, modules);
  if (store && loaded->has_weights) {
    VALORA_TRY(stored, store->add(shared));
    loaded->need = stored.need;
    Parts parts;
    for (AdapterStore::StoredPart& part : stored.parts) {
      loaded->parts.push_back(part.need);
      parts.push_back(std::move(part.matrix));
    }
    loaded->tensors =
        std::make_shared<AdapterTensors>(stored.weights, vocabulary_of(spec.vocabulary, parts));
    loaded->merge_use = stored.merge_use;
  } else {
    loaded->merge_use =
        std::make_shared<std::atomic<serving::MergeUse>>(merges.use_of(spec, modules));
    Parts parts;
    for (const adapters::AdapterPart& part : spec.parts) {
      VALORA_TRY(own, own_part(spec, part, limits, dtype, device));
      parts.push_back(std::move(own));
    }
    auto weights = std::make_shared<RankWeights>();
    weights->push_back(own_weights(spec, modules, dtype, device));
    loaded->tensors =
        std::make_shared<AdapterTensors>(std::move(weights), vocabulary_of(spec.vocabulary, parts));
  }
  for (size_t i = 0; i < spec.heads.size(); ++i) {
    const adapters::TaskHead& head = spec.heads[i];
    loaded->heads.push_back(
        {head.name, head.labels, head.problem_type, head.add_generation_prompt, heads.at(i)});
  }
  return loaded;
}

}  // namespace valora
