#include "adapters/folder/mlx_adapter.h"

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "base/text/strings.h"

namespace valora::adapters {
namespace {

constexpr const char* kMlxConfig = "adapter_config.json";
constexpr size_t kMostMlxConfigBytes = size_t{16} << 20;

Result<Json> mlx_config(const InputFolder& folder) {
  VALORA_TRY(text, folder.text(kMlxConfig, kMostMlxConfigBytes));
  return parse_json(text, folder.path_of(kMlxConfig));
}

Error mlx_refused(const std::string& what, const std::string& param) {
  return unprocessable(std::string(kMlxConfig) + ": " + what, param);
}

// A tensor's module, and what it is of it: "lora_a", "lora_b" or "m".
struct MlxName {
  std::string module, part;
  bool is_embedding() const { return module.ends_with("embed_tokens") || module.ends_with(".wte"); }
};

Result<MlxName> mlx_name(const std::string& tensor, const TensorView& view, bool dora) {
  const auto is = [&](const std::string& what) {
    return unprocessable("tensor \"" + shortened(tensor) + "\" is " + what);
  };
  const size_t dot = tensor.rfind('.');
  if (dot == tensor.npos || dot == 0) return is("none of an adapter of MLX");
  MlxName name{tensor.substr(0, dot), tensor.substr(dot + 1)};
  const bool magnitude = name.part == "m";
  if (!(name.part == "lora_a" || name.part == "lora_b" || (magnitude && dora)))
    return is("none of an adapter of MLX, which has lora_a and lora_b, and m with DoRA");
  if (view.shape.size() == 3) return is("of a mixture's experts, which are not read in MLX's form");
  if (view.shape.size() != (magnitude ? 1u : 2u)) return is("of another shape than MLX writes");
  if (dora && name.is_embedding())
    return is("DoRA on an embedding, which MLX computes otherwise than PEFT");
  return name;
}

std::string peft_name(const MlxName& name) {
  const std::string before = "base_model.model." + name.module + ".lora_";
  if (name.part == "m") return before + "magnitude_vector.weight";
  const std::string half = name.part == "lora_a" ? "A" : "B";
  return name.is_embedding() ? before + "embedding_" + half : before + half + ".weight";
}

// Rows become columns. `to` has as many bytes.
void transpose(const TensorView& from, uint8_t* to) {
  const auto rows = static_cast<size_t>(from.shape[0]),
             columns = static_cast<size_t>(from.shape[1]), size = dtype_size(from.dtype);
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns; ++column)
      std::memcpy(to + (column * rows + row) * size, &from.bytes[(row * columns + column) * size],
                  size);
}

// The configuration that PEFT would write.
Result<Json> peft_config(const Json& config, const std::set<std::string>& modules) {
  VALORA_TRY(type, field_or<std::string>(config, "fine_tune_type", "lora"));
  if (type != "lora" && type != "dora")
    return mlx_refused(
        "fine_tune_type \"" + shortened(type, 40) +
            "\" is not supported, only lora and dora: fuse the model with mlx_lm.fuse",
        "fine_tune_type");
  const Json& parameters = config.at("lora_parameters");
  if (!parameters.is_object())
    return mlx_refused("\"lora_parameters\" must be an object", "lora_parameters");
  VALORA_TRY(rank, required_field<int64_t>(parameters, "rank"));
  VALORA_TRY(scale, required_field<double>(parameters, "scale"));
  if (rank < 1) return mlx_refused("\"rank\" must be positive", "rank");
  VALORA_TRY(model, field_or<std::string>(config, "model", ""));
  return Json{{"peft_type", "LORA"},
              {"r", rank},
              {"lora_alpha", scale * static_cast<double>(rank)},
              {"use_dora", type == "dora"},
              {"target_modules", modules},
              {"base_model_name_or_path", model}};
}

}  // namespace

bool is_mlx_adapter(const InputFolder& folder) {
  const auto config = mlx_config(folder);
  return config.ok() && config->is_object() && !config->contains("peft_type") &&
         (config->contains("lora_parameters") ||
          (folder.has(kMlxTensors) && !folder.has("adapter_model.safetensors")));
}

Result<MlxAdapter> read_mlx_adapter(const InputFolder& folder, const SafeTensors& file) {
  VALORA_TRY(config, mlx_config(folder));
  if (!config.contains("lora_parameters"))
    return mlx_refused(
        "it is an adapter of MLX without \"lora_parameters\": releases of mlx-vlm disagree on the "
        "scale of this older form; train or save it again with a newer one",
        "lora_parameters");
  const bool dora = config.value("fine_tune_type", Json()) == "dora";
  const auto memory = std::make_shared<std::vector<uint8_t>>();
  size_t bytes = 0;
  for (const auto& [tensor, view] : file.tensors()) bytes += byte_size(view);
  memory->resize(bytes);
  std::map<std::string, TensorView> tensors;
  std::set<std::string> modules;
  size_t at = 0;
  for (const auto& [tensor, view] : file.tensors()) {
    VALORA_TRY(name, mlx_name(tensor, view, dora));
    TensorView made = view;
    made.bytes = std::span<const uint8_t>(*memory).subspan(at, byte_size(view));
    if (view.shape.size() == 2) {
      transpose(view, memory->data() + at);
      std::swap(made.shape[0], made.shape[1]);
    } else {
      std::ranges::copy(view.bytes, memory->data() + at);
    }
    at += byte_size(view);
    modules.insert(name.module);
    tensors.emplace(peft_name(name), std::move(made));
  }
  VALORA_TRY(peft, peft_config(config, modules));
  VALORA_TRY(lora, lora_config_of(peft));
  return MlxAdapter{std::move(lora), SafeTensors::changed(file, std::move(tensors), memory)};
}

}  // namespace valora::adapters
