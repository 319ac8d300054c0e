#include "adapters/tensors/base_copies.h"

#include <map>

#include "adapters/tensors/tensor_names.h"
#include "adapters/tensors/tensor_values.h"
#include "base/tensors/safetensors.h"
#include "base/text/strings.h"

namespace valora::adapters {
namespace {

std::string base_name(const TensorName& name) {
  return name.module + (name.role == TensorRole::kWeight ? ".weight" : ".bias");
}

Error cannot_serve(const TensorName& name, const std::string& why) {
  const bool is_weight = name.role == TensorRole::kWeight;
  return unprocessable("the adapter adapts " + shortened(name.module) +
                       (is_weight ? " (its whole weight" : " (its bias") + why +
                       "), which this version cannot serve");
}

bool is_vocabulary(const Module& module) {
  return module.kind == ModuleKind::kEmbedding || module.kind == ModuleKind::kHead;
}

// The module of a copy that may differ from the base; null: a difference is an error.
const Module* may_differ(const TensorName& name, const ModuleTable& modules,
                         const LoraConfig& config) {
  const auto index = modules.find(name.module);
  if (!index) return nullptr;
  const Module& module = modules.modules()[*index];
  if (name.role == TensorRole::kWeight) return is_vocabulary(module) ? &module : nullptr;
  const bool has_bias = module.kind == ModuleKind::kLinear || module.kind == ModuleKind::kHead;
  return config.trained_biases && has_bias ? &module : nullptr;
}

// True if the copy differs from the base model's in its number of tokens only.
bool has_other_tokens(const Module* module, const TensorView& copy,
                      const std::vector<int64_t>& base) {
  return module && is_vocabulary(*module) && copy.shape.size() == 2 && base.size() == 2 &&
         copy.shape[1] == base[1] && copy.shape[0] != base[0] && copy.shape[0] > 0;
}

// Reads one copy, compares it with the base and computes its digest.
class CopyReader {
 public:
  CopyReader(const SafeTensors& file, const std::string& tensor, const TensorName& name)
      : file_(file), tensor_(tensor), name_(name), view_(*file.find(tensor)) {
    digest_.add(static_cast<uint8_t>(view_.dtype)).add(std::span<const int64_t>(view_.shape));
  }

  // Fails at the first difference unless `may_differ`. nullopt: equal to the base.
  Result<std::optional<Digest>> read(const BaseWeights* base, bool may_differ) {
    bool equal = base != nullptr;
    VALORA_CHECK(visit_pieces(file_, tensor_, [&](size_t first, const TensorView& piece) -> Status {
      if (equal) {
        VALORA_TRY(same, base->equal(base_name(name_), first, piece));
        equal = same;
      }
      if (!equal && !may_differ) return cannot_serve(name_, ": it differs from the base model's");
      if (!all_finite(piece))
        return unprocessable("tensor \"" + shortened(tensor_) +
                             "\" has values that are not finite");
      digest_.add(piece.bytes);
      return {};
    }));
    return equal ? std::nullopt : std::optional(digest_.finish());
  }

 private:
  const SafeTensors& file_;
  const std::string& tensor_;
  const TensorName& name_;
  const TensorView& view_;
  DigestBuilder digest_;
};

}  // namespace

bool BaseCopies::are(const std::string& tensor, const ModuleTable& modules) const {
  const auto name = parse_tensor_name(tensor);
  if (!name.ok() || (name->role != TensorRole::kWeight && name->role != TensorRole::kBias))
    return false;
  if (modules.find(name->module)) return true;
  if (name->module.find('.') == std::string::npos) return false;  // a head
  return pass_over || (base && base->shape_of(base_name(*name)));
}

Result<std::vector<ChangedCopy>> BaseCopies::changed(const SafeTensors& file,
                                                     const AdapterContents& contents,
                                                     const ModuleTable& modules,
                                                     const LoraConfig& config) const {
  std::vector<ChangedCopy> changed;
  std::map<int, std::optional<Digest>> weights;  // by module; nullopt: the base model's
  if (pass_over) return changed;
  for (const auto& [tensor, name] : contents.base_copies) {
    const Module* module = may_differ(name, modules, config);
    const bool is_bias = name.role == TensorRole::kBias;
    auto shape = base ? base->shape_of(base_name(name)) : std::nullopt;
    if (!base && module && !is_bias)
      shape = module->kind == ModuleKind::kHead ? std::vector<int64_t>{module->out, module->in}
                                                : std::vector<int64_t>{module->in, module->out};
    if (!shape) return cannot_serve(name, "");
    const TensorView& copy = *file.find(tensor);
    const bool resized = !is_bias && has_other_tokens(module, copy, *shape);
    if (copy.shape != *shape && !resized)
      return cannot_serve(name, " of shape " + shape_text(copy.shape) + ", not the base model's " +
                                    shape_text(*shape));
    if (!is_served_dtype(copy.dtype))
      return unprocessable("tensor \"" + shortened(tensor) + "\" has dtype " +
                           dtype_name(copy.dtype) + "; adapters are served from F32, F16 or BF16");
    VALORA_TRY(values,
               CopyReader(file, tensor, name).read(resized ? nullptr : base, module != nullptr));
    const auto index = modules.find(name.module);
    // If the vocabulary was resized, PEFT saves a fully trained module under two names.
    if (index && !is_bias) {
      const auto [known, is_new] = weights.try_emplace(*index, values);
      if (!is_new && known->second != values)
        return unprocessable("the file has two weights of " + shortened(name.module));
      if (!is_new) continue;
    }
    if (values) changed.push_back({tensor, *index, is_bias, *values, name.below_rows});
  }
  return changed;
}

}  // namespace valora::adapters
