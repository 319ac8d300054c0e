#include "adapters/target_rules.h"

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

bool equal_with_wildcards(std::string_view key, std::string_view text) {
  for (size_t i = 0; i < key.size(); ++i)
    if (key[i] != text[i] && (key[i] != '.' || text[i] == '\n')) return false;
  return true;
}

template <typename T>
Result<T> first_hit(const std::vector<std::pair<NamePattern, T>>& patterns, std::string_view name,
                    T fallback, RegexBudget& budget) {
  for (const auto& [pattern, value] : patterns) {
    VALORA_TRY(hit, pattern.matches(name, budget));
    if (hit) return value;
  }
  return fallback;
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

bool NamePattern::is_plain(std::string_view key) {
  if (key.starts_with('^')) key.remove_prefix(1);
  for (const char c : key)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
          c == '.'))
      return false;
  return true;
}

Result<NamePattern> NamePattern::compile(const std::string& key, const std::string& source) {
  NamePattern pattern;
  pattern.whole_name_ = key.starts_with('^');
  pattern.plain_ = key.substr(pattern.whole_name_ ? 1 : 0);
  if (is_plain(key)) return pattern;
  VALORA_TRY(regex, Regex::compile("(.*\\.)?(" + key + ")$", source));
  pattern.regex_ = std::move(regex);
  return pattern;
}

Result<bool> NamePattern::matches(std::string_view name, RegexBudget& budget) const {
  if (regex_) {
    VALORA_TRY(groups, regex_->match(name, budget));
    return groups.has_value();
  }
  if (name.size() < plain_.size()) return false;
  const size_t begin = name.size() - plain_.size();
  if (!equal_with_wildcards(plain_, name.substr(begin))) return false;
  return begin == 0 || (!whole_name_ && name[begin - 1] == '.');
}

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
  return first_hit(ranks, name, rank, budget);
}

Result<double> TargetRules::scale_of(std::string_view name, int32_t module_rank,
                                     RegexBudget& budget) const {
  VALORA_TRY(module_alpha, first_hit(alphas, name, alpha, budget));
  return module_alpha / (rslora ? std::sqrt(double(module_rank)) : double(module_rank));
}

}  // namespace valora::adapters
