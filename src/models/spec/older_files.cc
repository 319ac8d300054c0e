#include "models/spec/older_files.h"

#include "base/files/file.h"

namespace valora::models {

Status add_older_quantisation(const std::string& dir, Json& config) {
  for (const char* key : {"quantization_config", "compression_config"})
    if (config.contains(key) ||
        (config.contains("text_config") && config["text_config"].is_object() &&
         config["text_config"].contains(key)))
      return {};
  for (const auto& [name, method] :
       {std::pair{"/quantize_config.json", "gptq"}, std::pair{"/quant_config.json", "awq"}}) {
    const std::string file = dir + name;
    if (!file_exists(file)) continue;
    VALORA_TRY(json, read_json_file(file));
    if (!json.is_object()) return unprocessable(file + " must hold a JSON object", file);
    if (!json.contains("quant_method")) json["quant_method"] = method;
    config["quantization_config"] = std::move(json);
    return {};
  }
  return {};
}

}  // namespace valora::models
