// How PEFT matches the keys of rank_pattern and alpha_pattern.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "adapters/targets/regex.h"
#include "base/result.h"

namespace valora::adapters {

// One key of rank_pattern or alpha_pattern: re.match((.*\.)?(KEY)$) on the module's name.
class NamePattern {
 public:
  static Result<NamePattern> compile(const std::string& key, const std::string& source);
  Result<bool> matches(std::string_view name, RegexBudget& budget) const;
  // True if the key can be compared without a regular expression.
  static bool is_plain(std::string_view key);

 private:
  // Nearly all keys are plain names and need no regular expression ('.' still matches any
  // character).
  std::string plain_;
  bool whole_name_ = false;  // the key began with '^'
  std::optional<Regex> regex_;
};

}  // namespace valora::adapters
