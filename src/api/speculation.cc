#include "api/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/json/json.h"

namespace valora {
namespace {

constexpr const char* kOption = "--speculative-config";
constexpr std::array<std::string_view, 4> kKeys = {"method", "num_speculative_tokens",
                                                   "prompt_lookup_max", "prompt_lookup_min"};

Error wrong(const std::string& what) {
  return invalid(fmt::format("{}: {}", kOption, what), "speculative_config");
}

// Absent: 0.
Result<int> count(const Json& config, std::string_view key, int most) {
  const auto value = optional_field<int32_t>(config, key);
  if (!value.ok() || (*value && (**value < 1 || **value > most)))
    return wrong(fmt::format("\"{}\" must be a whole number from 1 to {}", key, most));
  return value->value_or(0);
}

Result<SpeculationOptions> read_ngram(const Json& config) {
  for (const auto& [key, value] : config.items())
    if (std::ranges::find(kKeys, key) == kKeys.end())
      return wrong(fmt::format("\"{}\" is not a setting of method ngram; use {}", key,
                               fmt::join(kKeys, ", ")));
  SpeculationOptions options;
  VALORA_TRY(tokens, count(config, kKeys[1], SpeculationOptions::kMostTokens));
  VALORA_TRY(longest, count(config, kKeys[2], SpeculationOptions::kLongest));
  VALORA_TRY(least, count(config, kKeys[3], SpeculationOptions::kLongest));
  if (tokens == 0) return wrong("\"num_speculative_tokens\" is missing");
  options.tokens = tokens;
  // As in vLLM, if one of the two is missing it equals the other.
  if (longest > 0 || least > 0) {
    options.longest = longest > 0 ? longest : least;
    options.least = least > 0 ? least : longest;
  }
  if (options.least > options.longest)
    return wrong("\"prompt_lookup_min\" is above \"prompt_lookup_max\"");
  return options;
}

}  // namespace

Result<SpeculationOptions> parse_speculation(const std::string& text) {
  auto config = parse_json(text, kOption, {});
  if (!config.ok()) return config.error();
  if (!config->is_object()) return wrong("expected a JSON object");
  const auto method = optional_field<std::string>(*config, "method");
  if (!method.ok()) return wrong(R"("method" must be a string)");
  if (*method == "ngram" || (!*method && !config->contains("model"))) return read_ngram(*config);
  SpeculationOptions options;
  options.ignored = method->value_or("draft_model");
  return options;
}

}  // namespace valora
