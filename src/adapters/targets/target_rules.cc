#include "adapters/targets/target_rules.h"

#include <charconv>
#include <cmath>

namespace valora::adapters {
namespace {

bool is_listed(const std::unordered_set<std::string>& names, std::string_view name) {
  if (names.empty()) return false;
  if (names.contains(std::string(name))) return true;
  for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1))
    if (names.contains(std::string(name.substr(dot + 1)))) return true;
  return false;
}

template <typename T>
Result<T> value_for(const PatternValues<T>& patterns, std::string_view name, T fallback,
                    RegexBudget& budget) {
  VALORA_TRY(place, patterns.keys.first_match(name, budget));
  return place ? patterns.values[*place] : fallback;
}

// The layer index from the first layer pattern that matches; nullopt if the name is not in a layer.
Result<std::optional<int64_t>> layer_of(const std::vector<Regex>& patterns, std::string_view name,
                                        RegexBudget& budget) {
  for (const Regex& pattern : patterns) {
    VALORA_TRY(groups, pattern.match(name, budget));
    if (!groups) continue;
    // With alternation, the pattern may match without its index group.
    const std::string digits = groups->size() > 1 ? (*groups)[1] : "";
    int64_t layer = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), layer);
    if (error != std::errc{} || end != digits.data() + digits.size())
      return unprocessable(
          "layers_pattern captures \"" + digits + "\", which is not a layer's index",
          "layers_pattern");
    return std::optional(layer);
  }
  return std::optional<int64_t>{};
}

}  // namespace

bool TargetRules::targets_parameter(std::string_view name) const {
  return is_listed(parameters, name);
}

Result<bool> TargetRules::targets_name(std::string_view name, RegexBudget& budget) const {
  if (is_listed(excluded.names, name)) return false;
  if (excluded.regex) {
    VALORA_TRY(out, excluded.regex->full_match(name, budget));
    if (out) return false;
  }
  for (const Regex& regex : saved) {
    VALORA_TRY(groups, regex.match(name, budget));
    if (groups) return false;
  }
  if (all_linear) return true;
  if (targets.regex) return targets.regex->full_match(name, budget);
  if (!is_listed(targets.names, name)) return false;
  // As in PEFT, a module listed by its full name is a target in any layer.
  if (!layers || targets.names.contains(std::string(name))) return true;
  VALORA_TRY(layer, layer_of(layer_patterns, name, budget));
  return layer && layers->contains(*layer);
}

Result<int32_t> TargetRules::rank_of(std::string_view name, RegexBudget& budget) const {
  return value_for(ranks, name, rank, budget);
}

Result<double> TargetRules::scale_of(std::string_view name, int32_t module_rank,
                                     RegexBudget& budget) const {
  VALORA_TRY(module_alpha, value_for(alphas, name, alpha, budget));
  return module_alpha / (rslora ? std::sqrt(double(module_rank)) : double(module_rank));
}

}  // namespace valora::adapters
