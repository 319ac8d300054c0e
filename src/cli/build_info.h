// What this program was built from.
#pragma once

#include <string>

namespace valora::cli {

extern const char* const kCommit;  // 12 digits, "+changes" for a changed checkout; "unknown"

// Lines of version, commit, torch and instruction sets: the chosen one, and those of this CPU.
std::string version_text();
// torch's headers' version; the libraries are of the same one.
std::string torch_version();

}  // namespace valora::cli
