// The limit on open files.
#pragma once

#include <cstddef>

#include "server/server.h"

namespace valora::server {

// Raises the process's limit to fit as many connections as `limits` allows, plus other files.
// Returns how many connections fit, at most limits.max_connections, and logs if that is fewer.
// clients: sockets of clients without a connection.
size_t connections_within_descriptors(const HttpLimits& limits, size_t clients);

}  // namespace valora::server
