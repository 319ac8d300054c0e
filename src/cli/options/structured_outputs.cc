#include "cli/options/structured_outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/json/json.h"
#include "base/text/strings.h"

namespace valora::cli {
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
