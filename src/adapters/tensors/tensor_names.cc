#include "adapters/tensors/tensor_names.h"

#include <algorithm>
#include <array>

#include "base/text/strings.h"

namespace valora::adapters {
namespace {

constexpr std::string_view kPrefix = "base_model.model.";
constexpr std::string_view kLora = ".lora_";
constexpr std::string_view kBaseLayer = ".base_layer";
constexpr std::string_view kTokenRows = ".token_adapter.trainable_tokens_delta";
constexpr std::string_view kSaved = ".modules_to_save", kOriginalModule = ".original_module";
constexpr std::string_view kBelowRows = ".token_adapter.base_layer";
// Added by torch.compile, FSDP and activation checkpointing around the model or its layers.
// Trainers that save their own state dict leave them in the names.
constexpr std::array<std::string_view, 3> kWrappers{"_orig_mod", "_fsdp_wrapped_module",
                                                    "_checkpoint_wrapped_module"};
// The only layer of TRL's ValueHead, which reward-model trainers list in modules_to_save.
constexpr std::string_view kValueHead = "v_head.summary";
constexpr std::string_view kParallel = "module.";  // DistributedDataParallel and DeepSpeed

Error cannot_serve(std::string_view tensor, const std::string& what) {
  return unprocessable("tensor \"" + shortened(tensor) + "\" is " + what +
                       ", which this version cannot serve");
}

// "weight" or "ADAPTER.weight": PEFT stores adapters in module dictionaries, whose keys contain no
// dots.
bool is_parameter(std::string_view rest, std::string_view parameter) {
  const size_t dot = rest.find('.');
  return rest == parameter || (dot != rest.npos && dot > 0 && rest.substr(dot + 1) == parameter);
}

// "" or ".ADAPTER": parameters that PEFT stores in parameter dictionaries have no suffix of their
// own.
bool is_adapter(std::string_view rest) {
  return rest.empty() || (rest.size() > 1 && rest[0] == '.' && rest.find('.', 1) == rest.npos);
}

Result<TensorName> parse_lora_name(std::string_view tensor, std::string_view module,
                                   std::string_view rest) {
  const bool is_a = rest.starts_with("A."), is_b = rest.starts_with("B.");
  if ((is_a || is_b) && is_parameter(rest.substr(2), "weight"))
    return TensorName{is_a ? TensorRole::kLoraA : TensorRole::kLoraB, std::string(module)};
  if (is_b && is_parameter(rest.substr(2), "bias"))
    return TensorName{TensorRole::kLoraBias, std::string(module)};
  for (const auto& [half, role] : {std::pair("embedding_A", TensorRole::kEmbeddingA),
                                   {"embedding_B", TensorRole::kEmbeddingB}})
    if (rest.starts_with(half) && is_adapter(rest.substr(std::string_view(half).size())))
      return TensorName{role, std::string(module)};
  constexpr std::string_view kMagnitude = "magnitude_vector";
  if (rest.starts_with(kMagnitude)) {
    std::string_view adapter = rest.substr(kMagnitude.size());
    if (adapter.ends_with(".weight")) adapter.remove_suffix(std::string_view(".weight").size());
    if (is_adapter(adapter)) return TensorName{TensorRole::kMagnitude, std::string(module)};
  }
  return cannot_serve(tensor, "of an unknown kind");
}

// The name without training wrappers.
std::string unwrapped(std::string_view name) {
  while (name.starts_with(kParallel)) name.remove_prefix(kParallel.size());
  std::string out;
  while (!name.empty()) {
    const size_t end = std::min(name.find('.'), name.size() - 1) + 1;  // after the dot
    const std::string_view part = name.substr(0, end);
    if (!part.ends_with('.') ||
        std::ranges::find(kWrappers, part.substr(0, end - 1)) == kWrappers.end())
      out += part;
    name.remove_prefix(end);
  }
  if (out.starts_with(kParallel)) out.erase(0, kParallel.size());
  return out;
}

// "M.modules_to_save[.ADAPTER[.N]]" → "M[.N]": where PEFT keeps a fully trained module.
std::string without_saved(std::string_view module) {
  const size_t saved = module.rfind(kSaved), adapter = saved + kSaved.size();
  if (saved == module.npos || saved == 0) return std::string(module);
  if (adapter == module.size()) return std::string(module.substr(0, saved));
  if (module[adapter] != '.' || adapter + 1 == module.size() || module[adapter + 1] == '.')
    return std::string(module);
  const size_t end = std::min(module.find('.', adapter + 1), module.size());
  return std::string(module.substr(0, saved)).append(module.substr(end));
}

// Removes the suffix; returns false if it is absent.
bool take_end(std::string& text, std::string_view end) {
  if (!text.ends_with(end) || text.size() == end.size()) return false;
  text.resize(text.size() - end.size());
  return true;
}

}  // namespace

Result<TensorName> parse_tensor_name(std::string_view name) {
  const std::string plain = unwrapped(name);
  if (!plain.starts_with(kPrefix))
    return unprocessable("tensor \"" + shortened(name) + "\" does not begin with \"" +
                         std::string(kPrefix) + "\"");
  const std::string_view path = std::string_view(plain).substr(kPrefix.size());
  if (const size_t lora = path.rfind(kLora); lora != path.npos)
    return parse_lora_name(name, path.substr(0, lora), path.substr(lora + kLora.size()));
  if (const size_t rows = path.rfind(kTokenRows);
      rows != path.npos && rows > 0 && is_adapter(path.substr(rows + kTokenRows.size())))
    return TensorName{TensorRole::kTokenRows, std::string(path.substr(0, rows))};
  const size_t dot = path.rfind('.');
  const std::string_view parameter = dot == path.npos ? path : path.substr(dot + 1);
  if (dot == path.npos || dot == 0 || (parameter != "weight" && parameter != "bias"))
    return cannot_serve(name, "of an unknown kind");
  TensorName found{parameter == "weight" ? TensorRole::kWeight : TensorRole::kBias,
                   without_saved(path.substr(0, dot))};
  // PEFT also saves an adapted embedding's original weights, under these names.
  if (take_end(found.module, kOriginalModule)) found.role = TensorRole::kOriginal;
  found.below_rows = take_end(found.module, kBelowRows);
  if (!found.below_rows) take_end(found.module, kBaseLayer);
  if (found.module == kValueHead) found.module.resize(found.module.find('.'));
  return found;
}

}  // namespace valora::adapters
