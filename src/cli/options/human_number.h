// Numbers with a suffix, as in vLLM's command line.
#pragma once

#include <string>

namespace valora::cli {

// Turns "2k" into "2000" and "2K" into "2048": k, m, g, t are powers of 1000, K, M, G, T of 1024.
// The number may be a fraction if the result is an integer. Text without a suffix is unchanged.
// Returns an error message, or an empty string.
std::string expand_suffix(std::string& text);

}  // namespace valora::cli
