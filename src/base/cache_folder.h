// The folder in which the program keeps measurements of this machine.
#pragma once

#include <string>

namespace valora {

// $XDG_CACHE_HOME/valora/NAME, or the same in ~/.cache. Empty if neither variable is set.
std::string cache_path(const std::string& name);

}  // namespace valora
