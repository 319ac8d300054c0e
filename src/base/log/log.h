// Sets up logging: one line per event on stderr, through spdlog.
#pragma once

#include <spdlog/spdlog.h>

#include <memory>
#include <string>

namespace valora {

// level: trace, debug, info, warning, error or off. An unknown level means info.
void set_up_logging(const std::string& level);

// Escapes control characters: messages contain names and texts from files and clients, which must
// neither forge lines nor control a terminal.
std::unique_ptr<spdlog::formatter> log_formatter();

}  // namespace valora
