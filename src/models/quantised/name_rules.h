// Names of linears as quantisation configurations write them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "adapters/regex.h"

namespace valora::models {

// A set of linears. A linear has several names, one for each release of transformers; it is in the
// set if one of them is.
class NameSet {
 public:
  void add_name(std::string name) { names_.insert(std::move(name)); }
  // Everything below this module, or with this end of dotted parts, too.
  void add_part(std::string part) { parts_.push_back(std::move(part)); }
  // As re.match: anchored at the start alone.
  void add_pattern(adapters::Regex pattern) { patterns_.push_back(std::move(pattern)); }
  void add_all() { all_ = true; }

  // kUnprocessable if a pattern takes too long.
  Result<bool> has(std::span<const std::string> names, adapters::RegexBudget& budget) const;

 private:
  Result<bool> has_one(const std::string& name, adapters::RegexBudget& budget) const;

  std::unordered_set<std::string> names_;
  std::vector<std::string> parts_;
  std::vector<adapters::Regex> patterns_;
  bool all_ = false;
};

}  // namespace valora::models
