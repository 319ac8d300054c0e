// The options of `valora serve` that configure the HTTP server.
#pragma once

#include "cli/command.h"
#include "server/server.h"

namespace valora::cli {

void add_server_flags(Command command, server::ServerOptions& options);

}  // namespace valora::cli
