#include "models/quantised/name_rules.h"

#include <algorithm>

namespace valora::models {
namespace {

bool is_part(std::string_view name, std::string_view part) {
  if (name == part) return true;
  if (name.size() <= part.size()) return false;
  return (name.starts_with(part) && name[part.size()] == '.') ||
         (name.ends_with(part) && name[name.size() - part.size() - 1] == '.');
}

}  // namespace

Result<bool> NameSet::has(std::span<const std::string> names, adapters::RegexBudget& budget) const {
  if (all_) return true;
  for (const std::string& name : names) {
    VALORA_TRY(found, has_one(name, budget));
    if (found) return true;
  }
  return false;
}

Result<bool> NameSet::has_one(const std::string& name, adapters::RegexBudget& budget) const {
  if (names_.contains(name)) return true;
  if (std::ranges::any_of(parts_, [&](const std::string& part) { return is_part(name, part); }))
    return true;
  for (const adapters::Regex& pattern : patterns_) {
    VALORA_TRY(groups, pattern.match(name, budget));
    if (groups) return true;
  }
  return false;
}

}  // namespace valora::models
