#include "adapters/tensor_names.h"

#include "base/strings.h"

namespace valora::adapters {
namespace {

constexpr std::string_view kPrefix = "base_model.model.";
constexpr std::string_view kLora = ".lora_";
constexpr std::string_view kBaseLayer = ".base_layer";

Error cannot_serve(std::string_view tensor, const std::string& what) {
  return unprocessable("tensor \"" + shortened(tensor) + "\" is " + what +
                       ", which this version cannot serve");
}

// "weight" or "ADAPTER.weight": PEFT stores adapters in module dictionaries, whose keys contain no
// dot.
bool is_weight(std::string_view rest) {
  const size_t dot = rest.find('.');
  return rest == "weight" || (dot != rest.npos && dot > 0 && rest.substr(dot + 1) == "weight");
}

Result<TensorName> parse_lora_name(std::string_view tensor, std::string_view module,
                                   std::string_view rest) {
  const bool is_a = rest.starts_with("A."), is_b = rest.starts_with("B.");
  if ((is_a || is_b) && is_weight(rest.substr(2)))
    return TensorName{is_a ? TensorRole::kLoraA : TensorRole::kLoraB, std::string(module)};
  if (rest.starts_with("magnitude_vector")) return cannot_serve(tensor, "a DoRA magnitude");
  if (rest.starts_with("embedding_")) return cannot_serve(tensor, "an adapted embedding");
  if ((is_a || is_b) && rest.ends_with("bias")) return cannot_serve(tensor, "a LoRA bias");
  return cannot_serve(tensor, "of an unknown kind");
}

}  // namespace

Result<TensorName> parse_tensor_name(std::string_view name) {
  if (!name.starts_with(kPrefix))
    return unprocessable("tensor \"" + shortened(name) + "\" does not begin with \"" +
                         std::string(kPrefix) + "\"");
  const std::string_view path = name.substr(kPrefix.size());
  if (const size_t lora = path.rfind(kLora); lora != path.npos)
    return parse_lora_name(name, path.substr(0, lora), path.substr(lora + kLora.size()));
  const size_t dot = path.rfind('.');
  const std::string_view parameter = dot == path.npos ? path : path.substr(dot + 1);
  if (dot == path.npos || dot == 0 || (parameter != "weight" && parameter != "bias"))
    return cannot_serve(name, "of an unknown kind");
  // PEFT also saves the original weights of an adapted embedding, under this name.
  std::string_view module = path.substr(0, dot);
  if (module.ends_with(kBaseLayer)) module.remove_suffix(kBaseLayer.size());
  return TensorName{parameter == "weight" ? TensorRole::kWeight : TensorRole::kBias,
                    std::string(module)};
}

}  // namespace valora::adapters
