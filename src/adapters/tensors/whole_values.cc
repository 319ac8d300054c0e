#include "adapters/tensors/whole_values.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "adapters/tensors/tensor_values.h"

namespace valora::adapters {
namespace {

// Computes the factors and summands of linears' outputs.
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

  // on_vocabulary: the result of take_vocabulary_targets().
  Status add_gains(const std::vector<LoraTarget>& on_vocabulary) {
    for (const LoraTarget& target : spec_.targets) {
      VALORA_TRY(gain, gain_of(target));
      if (!gain.empty()) spec_.gains.push_back({target.module, std::move(gain)});
    }
    for (const LoraTarget& target : on_vocabulary) {
      if (module(target.module).kind == ModuleKind::kHead) {
        VALORA_CHECK(check_plain(target));
        continue;
      }
      VALORA_TRY(gain, gain_of(target));
      spec_.vocabulary.embedding_gain = std::move(gain);
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

  Status check_plain(const LoraTarget& target) const {
    const LoraHalves& halves = contents_.modules.at(target.module);
    if (!config_.dora && !config_.lora_bias && !halves.magnitude && !halves.bias) return {};
    return unprocessable("use_dora or lora_bias on " + module(target.module).name +
                         ", whose number of tokens is the adapter's own, cannot be served by this "
                         "version");
  }

  // The gain of each output; empty without a magnitude.
  Result<std::vector<float>> gain_of(const LoraTarget& target) {
    const LoraHalves& halves = contents_.modules.at(target.module);
    const Module& m = module(target.module);
    if (config_.dora != (halves.magnitude != nullptr))
      return unprocessable(m.name + (halves.magnitude ? " has a magnitude, but use_dora is not set"
                                                      : " has no magnitude, but use_dora is set"),
                           "use_dora");
    if (!halves.magnitude) return std::vector<float>();
    if (halves.magnitude->shape != std::vector<int64_t>{m.out})
      return unprocessable("the magnitude of " + m.name + " has shape " +
                           shape_text(halves.magnitude->shape) + "; the module requires " +
                           shape_text({m.out}));
    if (!base_)
      return unprocessable("the magnitude of " + m.name +
                               " (use_dora) needs the base model's weights: name the model",
                           "use_dora");
    spec_.replaces = true;
    const auto norms_of =
        m.kind == ModuleKind::kEmbedding ? &BaseWeights::column_norms : &BaseWeights::row_norms;
    VALORA_TRY(norms, (base_->*norms_of)(m.name, target.a, target.b, target.scale));
    std::vector<float> gain = floats_of(*halves.magnitude);
    for (size_t i = 0; i < gain.size(); ++i) {
      gain[i] /= norms.at(i);
      if (!std::isfinite(gain[i]))
        return unprocessable("output " + std::to_string(i) + " of " + m.name +
                             " has no weights for its magnitude to scale");
    }
    return gain;
  }

  Status check_lora_bias(const LoraTarget& target, const LoraHalves& halves) const {
    const Module& m = module(target.module);
    if (config_.lora_bias != (halves.bias != nullptr))
      return unprocessable(m.name + (halves.bias ? " has a bias of lora_B, but lora_bias is not set"
                                                 : " has no bias of lora_B, but lora_bias is set"),
                           "lora_bias");
    if (halves.bias && halves.bias->shape != std::vector<int64_t>{m.out})
      return unprocessable("the bias of lora_B of " + m.name + " has shape " +
                           shape_text(halves.bias->shape) + "; the module requires " +
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
    case PartKind::kHeadLora: return "low-rank product on the output layer";
    case PartKind::kTokenRows: return "rows of tokens";
    case PartKind::kEmbedding: return "whole embedding";
    case PartKind::kHead: break;
  }
  return "whole output layer";
}

bool is_of_resized_head(const LoraTarget& target, const ModuleTable& modules) {
  const Module& module = modules.modules()[target.module];
  return module.kind == ModuleKind::kHead && target.b.shape[0] != module.out;
}

std::vector<LoraTarget> take_vocabulary_targets(std::vector<LoraTarget>& targets,
                                                const ModuleTable& modules) {
  std::vector<LoraTarget> taken;
  std::erase_if(targets, [&](const LoraTarget& target) {
    if (modules.modules()[target.module].kind != ModuleKind::kEmbedding &&
        !is_of_resized_head(target, modules))
      return false;
    taken.push_back(target);
    return true;
  });
  return taken;
}
Status resolve_whole_values(const SafeTensors& file, const AdapterContents& contents,
                            const LoraConfig& config, const ModuleTable& modules,
                            const std::vector<ChangedCopy>& changed, const BaseWeights* base,
                            AdapterSpec& spec) {
  const std::vector<LoraTarget> taken = take_vocabulary_targets(spec.targets, modules);
  OutputChanges outputs(file, contents, config, modules, base, spec);
  VALORA_CHECK(outputs.add_shifts(changed));
  VALORA_CHECK(outputs.add_gains(taken));
  return resolve_vocabulary(file, contents, config, modules, changed, base, taken, spec);
}

}  // namespace valora::adapters
