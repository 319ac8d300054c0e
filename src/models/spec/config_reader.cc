#include "models/spec/config_reader.h"

#include "base/files/file.h"
#include "models/spec/load_error.h"
#include "models/spec/model_path.h"

namespace valora::models {
namespace {

template <typename T>
T read(const ConfigReader& config, const std::string& key, T fallback) {
  auto value = field_or<T>(config.json(), key, std::move(fallback));
  if (!value.ok()) config.refuse(value.error().message);
  return std::move(value).value();
}

}  // namespace

ConfigReader ConfigReader::nested_or_self(const std::string& key) const {
  return has(key) && object_.at(key).is_object() ? child(key) : *this;
}

ConfigReader ConfigReader::child(const std::string& key) const {
  if (!has(key) || !object_.at(key).is_object()) refuse("\"" + key + "\" is missing");
  return {object_.at(key), file_};
}

int64_t ConfigReader::integer(const std::string& key) const {
  if (!has(key)) refuse("\"" + key + "\" is missing");
  const int64_t value = read<int64_t>(*this, key, 0);
  // Far above any real model, and small enough that the product of two sizes does not overflow.
  if (value < 1 || value > (int64_t{1} << 30))
    refuse("\"" + key + "\" is out of range: " + std::to_string(value));
  return value;
}

int64_t ConfigReader::integer(const std::string& key, int64_t fallback) const {
  return has(key) ? integer(key) : fallback;
}

int64_t ConfigReader::at_most(const std::string& key, int64_t most,
                              std::optional<int64_t> fallback) const {
  const int64_t value = fallback ? integer(key, *fallback) : integer(key);
  if (value > most) refuse("\"" + key + "\" is out of range: " + std::to_string(value));
  return value;
}

double ConfigReader::number(const std::string& key, double fallback) const {
  return read<double>(*this, key, fallback);
}
bool ConfigReader::flag(const std::string& key, bool fallback) const {
  return read<bool>(*this, key, fallback);
}
std::string ConfigReader::text(const std::string& key, const std::string& fallback) const {
  return read<std::string>(*this, key, fallback);
}

std::vector<int64_t> ConfigReader::integers(const std::string& key) const {
  std::vector<int64_t> values;
  if (!has(key)) return values;
  if (!object_.at(key).is_array()) refuse("\"" + key + "\" must be a list of integers");
  for (const Json& value : object_.at(key)) {
    if (!value.is_number_integer()) refuse("\"" + key + "\" must be a list of integers");
    values.push_back(value.get<int64_t>());
  }
  return values;
}

std::vector<std::string> ConfigReader::texts(const std::string& key) const {
  std::vector<std::string> values;
  if (!has(key)) return values;
  if (!object_.at(key).is_array()) refuse("\"" + key + "\" must be a list of strings");
  for (const Json& value : object_.at(key)) {
    if (!value.is_string()) refuse("\"" + key + "\" must be a list of strings");
    values.push_back(value.get<std::string>());
  }
  return values;
}

void ConfigReader::refuse_changed_layers() const {
  for (const char* key : {"per_layer_config", "pruned_heads"})
    if (has(key) && !object_.at(key).empty())
      refuse("\"" + std::string(key) + "\" is not supported");
}

void ConfigReader::refuse(const std::string& why) const {
  throw LoadError(unprocessable(file_ + ": " + why, file_));
}

Result<ConfigReader> read_model_config(const ModelSource& source) {
  VALORA_TRY(gguf, open_gguf_model(source));
  if (gguf) {
    VALORA_TRY(made, gguf_model_config(*gguf));
    return ConfigReader(std::move(made), gguf->language->path());
  }
  const std::string& dir = source.path;
  VALORA_CHECK(check_model_folder(dir));
  const std::string file = dir + "/config.json";
  VALORA_TRY(json, read_json_file(file));
  if (!json.is_object()) return unprocessable(file + " must hold a JSON object", file);
  VALORA_CHECK(add_older_quantisation(dir, json));
  return ConfigReader(std::move(json), file);
}

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
