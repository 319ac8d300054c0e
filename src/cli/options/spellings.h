// vLLM's other spellings of options: --max_model_len, -tp 2, --limit-mm-per-prompt.image 2.
#pragma once

#include <string>
#include <vector>

namespace valora::cli {

// The arguments as the `known` options ("--name") spell them, up to "--". What is known already, or
// is known in no spelling, stays as it is.
// - "_" in a name becomes "-".
// - -tp, -pp, -dp, -q and -O become the long names.
// - The keys of --name.key VALUE are gathered into --name {"key": VALUE}, at the place of the
//   first. A value is JSON, else text.
std::vector<std::string> as_known(const std::vector<std::string>& arguments,
                                  const std::vector<std::string>& known);

}  // namespace valora::cli
