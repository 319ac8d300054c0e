// The modules that an adapter's configuration targets, with their rank and alpha, by PEFT's rules.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "adapters/targets/pattern_table.h"
#include "adapters/targets/regex.h"
#include "base/digest.h"
#include "base/result.h"

namespace valora::adapters {

// target_modules or exclude_modules: a list, whose entries match a module's name or a dotted suffix
// of it, or one regular expression for the whole name.
struct NameSet {
  std::unordered_set<std::string> names;
  std::optional<Regex> regex;
};

// use_bdlora: if the last component of a module's name contains one of the patterns, its A or B is
// block-diagonal and stored as vertically stacked blocks.
struct BlockDiagonal {
  std::vector<std::string> a, b;
  int64_t blocks = 1;
  bool strict = true;  // every module must match a pattern of `a` or `b`
};

template <typename T>
struct PatternValues {
  PatternTable keys;
  std::vector<T> values;  // one per key
};

struct TargetRules {
  Digest selection;         // of the options that decide what targets_name() is true for
  bool all_linear = false;  // target_modules: "all-linear"
  NameSet targets;
  std::unordered_set<std::string> parameters;  // target_parameters: names, or suffixes
  NameSet excluded;
  std::vector<Regex> saved;  // modules_to_save: modules at or under these names are not targets
  std::optional<std::set<int64_t>> layers;  // layers_to_transform
  std::vector<Regex> layer_patterns;        // each captures the layer's index
  int32_t rank = 8;
  double alpha = 8;
  bool rslora = false;
  std::optional<BlockDiagonal> block_diagonal;
  PatternValues<int32_t> ranks;  // rank_pattern
  PatternValues<double> alphas;  // alpha_pattern

  // True if target_parameters names this parameter.
  bool targets_parameter(std::string_view name) const;
  // Take a module's full name. Errors: kUnprocessable from regular expressions.
  Result<bool> targets_name(std::string_view name, RegexBudget& budget) const;
  Result<int32_t> rank_of(std::string_view name, RegexBudget& budget) const;
  // alpha / rank, or alpha / sqrt(rank) with rslora.
  Result<double> scale_of(std::string_view name, int32_t rank, RegexBudget& budget) const;
};

}  // namespace valora::adapters
