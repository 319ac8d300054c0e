// Logging set-up: one line per event on stderr, through spdlog.
#pragma once

#include <spdlog/spdlog.h>

#include <string>

namespace valora {

// level: trace, debug, info, warning, error or off. An unknown level is taken as info.
void set_up_logging(const std::string& level);

}  // namespace valora
