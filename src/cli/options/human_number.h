// Numbers with a suffix, as vLLM's command line takes them.
#pragma once

#include <string>

namespace valora::cli {

// Turns "2k" into "2000" and "2K" into "2048": k, m, g, t are powers of 1000, K, M, G, T of 1024. A
// fraction may stand before a suffix if the result is whole. Text without a suffix stays as it is.
// Returns an error, or an empty string.
std::string expand_suffix(std::string& text);

}  // namespace valora::cli
