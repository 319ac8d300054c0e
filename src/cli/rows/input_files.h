// The files of `valora run --input`: patterns and folders.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace valora::cli {

inline bool is_pattern(std::string_view text) { return text.find_first_of("*?[") != text.npos; }

// The files that a pattern matches, in the order of their names: * and ? within a name, [abc], and
// ** for any number of folders. Names that begin with a dot must be matched by a dot. kNotFound if
// there are none.
Result<std::vector<std::string>> matching_files(const std::string& pattern);
// All files below a folder but those of hidden names, in the order of their names.
Result<std::vector<std::string>> files_below(const std::string& folder);

}  // namespace valora::cli
