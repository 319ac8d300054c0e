#include "cli/options/json_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/text/strings.h"

namespace valora::cli {
namespace {

constexpr const char* kOption = "--default-mm-loras";

Status check_modality(const std::string& modality) {
  if (modality == "image" || modality == "video") return {};
  if (modality == "audio") return invalid(fmt::format("{}: audio is not supported", kOption));
  return invalid(
      fmt::format("{} has \"{}\"; the modalities are image and video", kOption, modality));
}

}  // namespace

Result<std::vector<DefaultMmLora>> read_default_mm_loras(const std::string& text,
                                                         const std::vector<std::string>& known) {
  std::vector<DefaultMmLora> defaults;
  if (text.empty()) return defaults;
  VALORA_TRY(json, parse_json(text, kOption));
  if (!json.is_object())
    return invalid(
        fmt::format(R"({} takes an object such as {{"image": "NAME or FOLDER"}})", kOption));
  for (const auto& [modality, value] : json.items()) {
    VALORA_CHECK(check_modality(modality));
    if (!value.is_string() || value.get_ref<const std::string&>().empty())
      return invalid(fmt::format("{}: \"{}\" must be the name or the folder of an adapter", kOption,
                                 modality));
    const auto adapter = value.get<std::string>();
    if (std::ranges::find(known, adapter) != known.end()) {
      defaults.push_back({modality, adapter, {}});
    } else if (file_exists(adapter + "/adapter_config.json")) {
      defaults.push_back({modality, modality, adapter});
    } else {
      return invalid(fmt::format(
          "{}: \"{}\" is neither an adapter that is loaded at start nor a folder with an "
          "adapter_config.json",
          kOption, adapter));
    }
  }
  return defaults;
}

namespace {

constexpr const char* kConfigOption = "--structured-outputs-config";
constexpr const char* kBackends[] = {"auto", "xgrammar", "guidance", "outlines",
                                     "lm-format-enforcer"};

Error config_fault(const std::string& reason) {
  return invalid(fmt::format("{} {}", kConfigOption, reason), kConfigOption);
}

Status check_key(const std::string& key, const Json& value) {
  const bool is_flag = key == "disable_fallback" || key == "disable_any_whitespace" ||
                       key == "disable_additional_properties" || key == "enable_in_reasoning";
  if (is_flag && !value.is_boolean())
    return config_fault(fmt::format("has \"{}\", which must be true or false", key));
  if (key == "disable_additional_properties" && value == true)
    return config_fault(
        "has \"disable_additional_properties\": schemas without \"strict\": false have none "
        "anyway");
  const bool reasons = key == "reasoning_parser" || key == "reasoning_parser_plugin";
  const bool nothing =
      value.is_null() || (value.is_string() && value.get_ref<const std::string&>().empty());
  if (key == "enable_in_reasoning" && value == true)
    return config_fault("has \"enable_in_reasoning\": forms describe what follows the thought");
  if (reasons && !nothing)
    return config_fault(fmt::format("has \"{}\"; give --reasoning-parser", key));
  if (key == "backend" && std::ranges::find(kBackends, value) == std::end(kBackends))
    return config_fault("has an unknown \"backend\"");
  if (!is_flag && !reasons && key != "backend")
    return config_fault(fmt::format("has \"{}\", which is not supported", shortened(key, 60)));
  return {};
}

}  // namespace

Result<std::optional<JsonSpacing>> read_structured_outputs(const std::string& text) {
  std::optional<JsonSpacing> spacing;
  if (text.empty()) return spacing;
  VALORA_TRY(config, parse_json(text, kConfigOption));
  if (!config.is_object()) return config_fault("takes an object");
  for (const auto& [key, value] : config.items()) VALORA_CHECK(check_key(key, value));
  if (config.value("disable_any_whitespace", false)) spacing = JsonSpacing::kCompact;
  return spacing;
}

}  // namespace valora::cli
