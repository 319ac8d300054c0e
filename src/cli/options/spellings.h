// vLLM's other spellings of options: --max_model_len, -tp 2, --limit-mm-per-prompt.image 2,
// --enable-prefix-caching False.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace valora::cli {

struct KnownOptions {
  std::vector<std::string> names;  // "--name"
  std::vector<std::string> flags;  // those of the names that take no value
};

// The arguments as the `known` options spell them, up to "--". What is known already, or
// is known in no spelling, stays as it is.
// - "_" in a name becomes "-".
// - -tp, -pp, -dp, -q and -O become the long names.
// - The keys of --name.key VALUE are gathered into --name {"key": VALUE}, at the place of the
//   first. A value is JSON, else text.
// - A flag may have a value, true or false in any case: --flag false becomes --no-flag, and
//   --flag=false where there is no such option.
std::vector<std::string> as_known(const std::vector<std::string>& arguments,
                                  const KnownOptions& known);

// true and false in any case; absent for other texts.
std::optional<bool> truth_of(std::string_view text);
// The name that turns a flag off: --no-flag, or --flag of --no-flag; empty if it is not known.
std::string opposite_of(const std::string& flag, const std::vector<std::string>& names);

}  // namespace valora::cli
