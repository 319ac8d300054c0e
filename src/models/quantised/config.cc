#include "models/quantised/config.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/spec/load_error.h"

namespace valora::models {
namespace {

// The section `key`, whose errors include its name.
std::optional<ConfigReader> section(const ConfigReader& config, const std::string& key) {
  if (!config.has(key)) return std::nullopt;
  const Json* found = &config.json().at(key);
  if (!found->is_object()) config.refuse("\"" + key + "\" must be an object");
  // Older releases of compressed-tensors nest it one level deeper.
  if (found->contains("quantization_config") && found->at("quantization_config").is_object())
    found = &found->at("quantization_config");
  return ConfigReader(*found, config.file() + ": " + key);
}

std::optional<ConfigReader> section_of(const ConfigReader& config) {
  for (const char* key : {"quantization_config", "compression_config"}) {
    if (auto found = section(config, key)) return found;
    if (!config.has("text_config") || !config.json().at("text_config").is_object()) continue;
    if (auto found = section(config.child("text_config"), key)) return found;
  }
  return std::nullopt;
}

std::string describe(const QuantisedScheme& s) {
  if (s.packing == Packing::kCodes) return "codes of 4 bits";
  const std::string floats =
      s.packing == Packing::kFp8 || s.packing == Packing::kFloats ? "floats of " : "";
  std::string text = fmt::format("{}{} bits", floats, s.bits);
  switch (s.scope) {
    case ScaleScope::kTensor: return text + " with one scale";
    case ScaleScope::kChannel: return text + " with a scale per output";
    case ScaleScope::kGroup: return text + fmt::format(" in groups of {}", s.group);
    case ScaleScope::kBlock:
      return text + fmt::format(" in blocks of {} x {}", s.block_out, s.block_in);
  }
  return text;
}

}  // namespace

const QuantisedConfig::Rule* QuantisedConfig::rule_of(std::span<const std::string> names) const {
  const auto has = [&](const Rule& rule) {
    auto found = rule.linears.has(names, budget_);
    if (!found.ok()) throw LoadError(unprocessable(file_ + ": " + found.error().message, file_));
    return *found;
  };
  const Rule* chosen = nullptr;
  for (const Rule& rule : unordered_) {
    if (!has(rule)) continue;
    if (chosen && chosen->scheme != rule.scheme)
      throw LoadError(unprocessable(
          file_ + ": " + chosen->key + " and " + rule.key + " disagree on " + names.front(),
          file_));
    chosen = &rule;
  }
  if (chosen) return chosen;
  const auto first = std::ranges::find_if(rules_, has);
  return first == rules_.end() ? nullptr : &*first;
}

const QuantisedConfig::Rule* QuantisedConfig::rule_of_stored(
    std::span<const std::string> names) const {
  const Rule* const any = rule_of(names);
  if (any && any->scheme) return any;
  for (const std::string& name : names)
    if (const Rule* own = rule_of({&name, 1}); own && own->scheme) return own;
  return any;
}

std::string QuantisedConfig::describe() const {
  std::vector<std::string> all;
  for (const std::vector<Rule>* rules : {&rules_, &unordered_})
    for (const Rule& rule : *rules)
      if (rule.scheme)
        if (std::string text = models::describe(*rule.scheme); !std::ranges::count(all, text))
          all.push_back(std::move(text));
  return fmt::format("{}", fmt::join(all, " and "));
}

std::optional<QuantisedConfig> read_quantised_config(const ConfigReader& config) {
  const auto found = section_of(config);
  if (!found) return std::nullopt;
  const std::string method = found->text("quant_method", "");
  // Folders written before transformers supported compressed-tensors name another method, or none.
  if (method == "compressed-tensors" || found->has("config_groups"))
    return read_compressed_tensors_config(*found);
  if (method == "gptq") return read_gptq_config(*found);
  if (method == "awq") return read_awq_config(*found);
  if (method == "auto-round" || method == "intel/auto-round") return read_auto_round_config(*found);
  if (method == "fp8") return read_fp8_config(*found);
  if (method == "bitsandbytes") return read_bitsandbytes_config(*found);
  if (method.empty() && config.has("quantization"))
    config.refuse(
        "this is a folder of MLX: its \"quantization\" packs weights in MLX's own layout, which is "
        "not read; take the original folder, or one in another format");
  found->refuse(method.empty()
                    ? "quant_method is missing, so the stored integers would be read as weights"
                    : "quant_method \"" + method +
                          "\" is not supported, only compressed-tensors, gptq, awq, auto-round, "
                          "fp8 and bitsandbytes; the stored values would be read as weights");
}

void refuse_set(const ConfigReader& config, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (!config.has(key)) continue;
    const Json& value = config.json().at(key);
    const bool off = value.is_boolean()  ? !value.get<bool>()
                     : value.is_string() ? value.get_ref<const std::string&>().empty()
                                         : value.is_structured() && value.empty();
    if (!off) config.refuse("\"" + std::string(key) + "\" is not supported");
  }
}

}  // namespace valora::models
