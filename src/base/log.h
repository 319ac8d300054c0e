// Logging set-up: one line per event on stderr, through spdlog.
#pragma once

#include <spdlog/spdlog.h>

#include <memory>
#include <string>

namespace valora {

// level: trace, debug, info, warning, error or off. An unknown level is taken as info.
void set_up_logging(const std::string& level);

// Messages hold names and texts of files and clients, so their control characters are escaped: they
// can neither forge lines nor act on a terminal.
std::unique_ptr<spdlog::formatter> log_formatter();

}  // namespace valora
