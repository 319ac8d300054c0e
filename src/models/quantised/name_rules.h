// Names of linears in quantisation configurations.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "adapters/targets/regex.h"

namespace valora::models {

// A set of linears. A linear has several names, one per release of transformers, and is in the set
// if any of them is.
class NameSet {
 public:
  void add_name(std::string name) { names_.insert(std::move(name)); }
  // Matches names that equal `part`, are below it, or end in it at a dot.
  void add_part(std::string part) { parts_.push_back(std::move(part)); }
  // As with re.match, anchored at the start only.
  void add_pattern(adapters::Regex pattern) { patterns_.push_back(std::move(pattern)); }
  void add_all() { all_ = true; }

  // kUnprocessable if matching a pattern takes too long.
  Result<bool> has(std::span<const std::string> names, adapters::RegexBudget& budget) const;

 private:
  Result<bool> has_one(const std::string& name, adapters::RegexBudget& budget) const;

  std::unordered_set<std::string> names_;
  std::vector<std::string> parts_;
  std::vector<adapters::Regex> patterns_;
  bool all_ = false;
};

}  // namespace valora::models
