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

// Reports unknown options together with the nearest known ones. One line per unknown argument, in
// the order given: for an option, with the nearest of the `known` ones ("--name"), if any; the
// value after it is part of it. given: all arguments.
std::vector<std::string> describe_unknown(const std::vector<std::string>& unknown,
                                          const std::vector<std::string>& given,
                                          const std::vector<std::string>& known);

// Numbers with a suffix, as in vLLM's command line: turns "2k" into "2000" and "2K" into "2048": k,
// m, g, t are powers of 1000, K, M, G, T of 1024. The number may be a fraction if the result is an
// integer. Text without a suffix is unchanged. Returns an error message, or an empty string.
std::string expand_suffix(std::string& text);

}  // namespace valora::cli
