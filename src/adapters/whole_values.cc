#include "adapters/whole_values.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "adapters/tensor_values.h"
#include "adapters/vocabulary_values.h"

namespace valora::adapters {
namespace {

// What is added to outputs, and what multiplies them.
class OutputChanges {
 public:
  OutputChanges(const SafeTensors& file, const AdapterContents& contents, const LoraConfig& config,
                const ModuleTable& modules, const BaseWeights* base, AdapterSpec& spec)
      : file_(file),
        contents_(contents),
        config_(config),
        modules_(modules),
        spec_(spec),
        base_(base) {}

  Status add_gains() {
    for (const LoraTarget& target : spec_.targets) {
      const LoraHalves& halves = contents_.modules.at(target.module);
      const Module& m = module(target.module);
      if (config_.dora != (halves.magnitude != nullptr))
        return unprocessable(
            m.name + (halves.magnitude ? " has a magnitude, but use_dora is not set"
                                       : " has no magnitude, but use_dora is set"),
            "use_dora");
      if (!halves.magnitude) continue;
      if (halves.magnitude->shape != std::vector<int64_t>{m.out})
        return unprocessable("the magnitude of " + m.name + " has shape " +
                             shape_text(halves.magnitude->shape) + "; the module asks for " +
                             shape_text({m.out}));
      if (!base_)
        return unprocessable("the magnitude of " + m.name +
                                 " (use_dora) needs the base model's weights: name the model",
                             "use_dora");
      spec_.replaces = true;
      VALORA_TRY(norms, base_->row_norms(m.name, target.a, target.b, target.scale));
      OutputValues gain{target.module, floats_of(*halves.magnitude)};
      for (size_t i = 0; i < gain.values.size(); ++i) {
        gain.values[i] /= norms.at(i);
        if (!std::isfinite(gain.values[i]))
          return unprocessable("output " + std::to_string(i) + " of " + m.name +
                               " has no weights for its magnitude to scale");
      }
      spec_.gains.push_back(std::move(gain));
    }
    return {};
  }

  Status add_shifts(const std::vector<ChangedCopy>& changed) {
    std::map<int, std::vector<float>> shifts;
    for (const LoraTarget& target : spec_.targets) {
      const LoraHalves& halves = contents_.modules.at(target.module);
      VALORA_CHECK(check_lora_bias(target, halves));
      if (!halves.bias) continue;
      std::vector<float>& shift = shifts[target.module] = floats_of(*halves.bias);
      for (float& value : shift) value *= target.scale;
    }
    for (const ChangedCopy& copy : changed) {
      if (!copy.is_bias) continue;
      spec_.replaces = true;
      spec_.bytes += byte_size(*file_.find(copy.tensor));
      VALORA_TRY(before, base_->values_of(module(copy.module).name + ".bias"));
      const std::vector<float> trained = floats_of(*file_.find(copy.tensor));
      if (before.size() != trained.size())
        return internal("a bias of " + module(copy.module).name + " has changed its size");
      std::vector<float>& shift = shifts[copy.module];
      shift.resize(trained.size());
      for (size_t i = 0; i < shift.size(); ++i) shift[i] += trained[i] - before[i];
    }
    for (auto& [index, values] : shifts) spec_.shifts.push_back({index, std::move(values)});
    return {};
  }

 private:
  const Module& module(int index) const { return modules_.modules()[index]; }

  Status check_lora_bias(const LoraTarget& target, const LoraHalves& halves) const {
    const Module& m = module(target.module);
    if (config_.lora_bias != (halves.bias != nullptr))
      return unprocessable(m.name + (halves.bias ? " has a bias of lora_B, but lora_bias is not set"
                                                 : " has no bias of lora_B, but lora_bias is set"),
                           "lora_bias");
    if (halves.bias && halves.bias->shape != std::vector<int64_t>{m.out})
      return unprocessable("the bias of lora_B of " + m.name + " has shape " +
                           shape_text(halves.bias->shape) + "; the module asks for " +
                           shape_text({m.out}));
    return {};
  }
  const SafeTensors& file_;
  const AdapterContents& contents_;
  const LoraConfig& config_;
  const ModuleTable& modules_;
  AdapterSpec& spec_;
  const BaseWeights* base_;
};

}  // namespace

const char* part_kind_name(PartKind kind) {
  switch (kind) {
    case PartKind::kEmbeddingLora: return "low-rank product on the embedding";
    case PartKind::kTokenRows: return "rows of tokens";
    case PartKind::kEmbedding: return "whole embedding";
    case PartKind::kHead: break;
  }
  return "whole output layer";
}

std::vector<LoraTarget> take_embedding_targets(std::vector<LoraTarget>& targets,
                                               const ModuleTable& modules) {
  std::vector<LoraTarget> taken;
  std::erase_if(targets, [&](const LoraTarget& target) {
    if (modules.modules()[target.module].kind != ModuleKind::kEmbedding) return false;
    taken.push_back(target);
    return true;
  });
  return taken;
}
Status resolve_whole_values(const SafeTensors& file, const AdapterContents& contents,
                            const LoraConfig& config, const ModuleTable& modules,
                            const std::vector<ChangedCopy>& changed, const BaseWeights* base,
                            AdapterSpec& spec) {
  const std::vector<LoraTarget> embeddings = take_embedding_targets(spec.targets, modules);
  OutputChanges outputs(file, contents, config, modules, base, spec);
  VALORA_CHECK(outputs.add_shifts(changed));
  VALORA_CHECK(outputs.add_gains());
  return resolve_vocabulary(file, contents, config, modules, changed, base, embeddings, spec);
}

}  // namespace valora::adapters
