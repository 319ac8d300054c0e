#include "adapters/folder/adapter_contents.h"

#include <algorithm>

#include "adapters/tensors/base_copies.h"
#include "adapters/tensors/stored_experts.h"
#include "adapters/tensors/tensor_names.h"
#include "adapters/tensors/tensor_values.h"
#include "base/text/strings.h"

namespace valora::adapters {
namespace {

Error cannot_serve(const std::string& module) {
  return unprocessable("the adapter adapts " + shortened(module) +
                       ", which this version cannot serve");
}

Status check_values(const std::string& tensor, const TensorView& view) {
  if (!is_served_dtype(view.dtype))
    return unprocessable("tensor \"" + shortened(tensor) + "\" has dtype " +
                         dtype_name(view.dtype) + "; adapters are served from F32, F16 or BF16");
  if (!all_finite(view))
    return unprocessable("tensor \"" + shortened(tensor) + "\" has values that are not finite");
  return {};
}

Status place_half(const std::string& tensor, const TensorName& name, const TensorView& view,
                  const ModuleTable& modules, AdapterContents& contents) {
  const auto module = modules.find(name.module);
  if (!module)
    return unprocessable("the adapter adapts " + shortened(name.module) +
                         ", which this model does not have (tensor \"" + shortened(tensor) + "\")");
  const Module& adapted = modules.modules()[*module];
  const bool of_embedding =
      name.role == TensorRole::kEmbeddingA || name.role == TensorRole::kEmbeddingB;
  if (adapted.kind == ModuleKind::kUnread) {
    contents.unread.insert(*module);
    return {};
  }
  const bool of_either = name.role == TensorRole::kMagnitude;
  if (adapted.kind == ModuleKind::kOther ||
      (!of_either && of_embedding != (adapted.kind == ModuleKind::kEmbedding)))
    return cannot_serve(name.module);
  LoraHalves& halves = contents.modules[*module];
  const bool is_a = name.role == TensorRole::kLoraA || name.role == TensorRole::kEmbeddingA;
  const bool is_bias = name.role == TensorRole::kLoraBias,
             is_magnitude = name.role == TensorRole::kMagnitude;
  const TensorView*& half = is_bias        ? halves.bias
                            : is_magnitude ? halves.magnitude
                            : is_a         ? halves.a
                                           : halves.b;
  if (half)
    return unprocessable("tensor \"" + shortened(tensor) + "\" is the second " +
                         (is_bias        ? "bias of lora_B"
                          : is_magnitude ? "magnitude"
                          : is_a         ? "lora_A"
                                         : "lora_B") +
                         " of " + adapted.name);
  half = &view;
  if (!is_bias && !is_magnitude) (is_a ? halves.a_tensor : halves.b_tensor) = tensor;
  halves.name = name.module;
  return {};
}

Status place_token_rows(const std::string& tensor, const TensorName& name, const TensorView& view,
                        const ModuleTable& modules, AdapterContents& contents) {
  const auto module = modules.find(name.module);
  const ModuleKind kind = module ? modules.modules()[*module].kind : ModuleKind::kOther;
  if (kind != ModuleKind::kEmbedding && kind != ModuleKind::kHead)
    return unprocessable("tensor \"" + shortened(tensor) +
                         "\" has rows of a module that is neither the embedding nor the output "
                         "layer of this model");
  if (!contents.token_rows.emplace(*module, TokenRows{tensor, &view}).second)
    return unprocessable("tensor \"" + shortened(tensor) + "\" has the second rows of " +
                         modules.modules()[*module].name);
  return {};
}

// Ignores the values, because the file also has the module's trained weight (check_saved_modules).
Status place_original(const std::string& tensor, const TensorName& name, const ModuleTable& modules,
                      AdapterContents& contents) {
  contents.originals.insert(tensor);
  if (modules.find(name.module)) return {};
  return unprocessable("tensor \"" + shortened(tensor) + "\" is of " + shortened(name.module) +
                       ", which this model does not have");
}

// A fully trained module that the model does not have can only be a task head of modules_to_save.
Status place_head(const std::string& tensor, const TensorName& name, const TensorView& view,
                  const LoraConfig& config, AdapterContents& contents) {
  const auto& saved = config.modules_to_save;
  if (std::find(saved.begin(), saved.end(), name.module) == saved.end() ||
      name.module.find('.') != std::string::npos)
    return unprocessable(
        "tensor \"" + shortened(tensor) +
        "\" is neither a LoRA weight nor a head named in modules_to_save, so it cannot be served");
  HeadTensors& head = contents.heads[name.module];
  (name.role == TensorRole::kWeight ? head.weight : head.bias) = &view;
  return {};
}

Status check_complete(const AdapterContents& contents, const ModuleTable& modules) {
  for (const auto& [module, halves] : contents.modules)
    if (!halves.a || !halves.b)
      return unprocessable(modules.modules()[module].name + " has no " +
                           (halves.a ? "lora_B" : "lora_A") + " weight");
  for (const auto& [name, head] : contents.heads)
    if (!head.weight) return unprocessable("the head " + name + " has a bias but no weight");
  return {};
}

}  // namespace

Result<AdapterContents> sort_tensors(const SafeTensors& file, const LoraConfig& config,
                                     const ModuleTable& modules, const BaseCopies& copies) {
  AdapterContents contents;
  StoredExperts experts(modules);
  for (const auto& [tensor, view] : file.tensors()) {
    VALORA_TRY(name, parse_tensor_name(tensor));
    VALORA_TRY(of_experts, experts.take(tensor, name, view));
    if (of_experts) continue;
    if (is_low_rank(name.role))
      VALORA_CHECK(place_half(tensor, name, view, modules, contents));
    else if (name.role == TensorRole::kTokenRows)
      VALORA_CHECK(place_token_rows(tensor, name, view, modules, contents));
    else if (name.role == TensorRole::kOriginal)
      VALORA_CHECK(place_original(tensor, name, modules, contents));
    else if (copies.are(tensor, modules))
      contents.base_copies.emplace(tensor, std::move(name));
    else
      VALORA_CHECK(place_head(tensor, name, view, config, contents));
  }
  VALORA_CHECK(experts.split(contents));
  VALORA_CHECK(check_complete(contents, modules));
  // Last, because only this check reads all values.
  for (const auto& [tensor, view] : file.tensors()) VALORA_CHECK(check_values(tensor, view));
  return contents;
}

}  // namespace valora::adapters
