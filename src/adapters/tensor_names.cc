#include "adapters/tensor_names.h"

#include "base/strings.h"

namespace valora::adapters {
namespace {

constexpr std::string_view kPrefix = "base_model.model.";
constexpr std::string_view kLora = ".lora_";
constexpr std::string_view kBaseLayer = ".base_layer";
constexpr std::string_view kTokenRows = ".token_adapter.trainable_tokens_delta";

Error cannot_serve(std::string_view tensor, const std::string& what) {
  return unprocessable("tensor \"" + shortened(tensor) + "\" is " + what +
                       ", which this version cannot serve");
}

// "weight" or "ADAPTER.weight": PEFT stores adapters in module dictionaries, whose keys contain no
// dot.
bool is_parameter(std::string_view rest, std::string_view parameter) {
  const size_t dot = rest.find('.');
  return rest == parameter || (dot != rest.npos && dot > 0 && rest.substr(dot + 1) == parameter);
}

// "" or ".ADAPTER": parameters that PEFT stores in parameter dictionaries have no name of their
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

}  // namespace

Result<TensorName> parse_tensor_name(std::string_view name) {
  if (!name.starts_with(kPrefix))
    return unprocessable("tensor \"" + shortened(name) + "\" does not begin with \"" +
                         std::string(kPrefix) + "\"");
  const std::string_view path = name.substr(kPrefix.size());
  if (const size_t lora = path.rfind(kLora); lora != path.npos)
    return parse_lora_name(name, path.substr(0, lora), path.substr(lora + kLora.size()));
  if (const size_t rows = path.rfind(kTokenRows);
      rows != path.npos && rows > 0 && is_adapter(path.substr(rows + kTokenRows.size())))
    return TensorName{TensorRole::kTokenRows, std::string(path.substr(0, rows))};
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
