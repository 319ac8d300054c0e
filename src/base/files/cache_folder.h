// The folder that caches measurements of this machine.
#pragma once

#include <string>

namespace valora {

// $XDG_CACHE_HOME/valora/NAME, or ~/.cache/valora/NAME. Empty if neither XDG_CACHE_HOME nor HOME is
// set.
std::string cache_path(const std::string& name);

}  // namespace valora
