// Translates vLLM's other spellings of options: --max_model_len, -tp 2, --limit-mm-per-prompt.image
// 2, --enable-prefix-caching False.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace valora::cli {

struct KnownOptions {
  std::vector<std::string> names;  // "--name"
  std::vector<std::string> flags;  // the subset of names that take no value
};

// Spells the arguments as the `known` options do, up to "--". Arguments that are already known, or
// unknown in any spelling, are unchanged.
// - "_" in a name becomes "-".
// - -tp, -pp, -dp, -q and -O become the long names.
// - Keys in --name.key VALUE are collected into --name {"key": VALUE}, in the position of the
//   first. Values that are not JSON are text.
// - A flag may have a value, true or false in any case: --flag false becomes --no-flag, or
//   --flag=false if there is no such option.
std::vector<std::string> as_known(const std::vector<std::string>& arguments,
                                  const KnownOptions& known);

// Parses true and false in any case; nullopt for other text.
std::optional<bool> truth_of(std::string_view text);
// The name that turns a flag off: --no-flag for --flag, or the reverse; empty if that name is
// unknown.
std::string opposite_of(const std::string& flag, const std::vector<std::string>& names);

}  // namespace valora::cli
