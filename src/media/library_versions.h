// The versions of the libraries that read media, as they name themselves at run time.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace valora::media {

// (name, version), by name.
std::vector<std::pair<std::string, std::string>> library_versions();

}  // namespace valora::media
