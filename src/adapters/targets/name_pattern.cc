#include "adapters/targets/name_pattern.h"

namespace valora::adapters {
namespace {

bool equal_with_wildcards(std::string_view key, std::string_view text) {
  for (size_t i = 0; i < key.size(); ++i)
    if (key[i] != text[i] && (key[i] != '.' || text[i] == '\n')) return false;
  return true;
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

}  // namespace valora::adapters
