// The limit of open files.
#pragma once

#include <cstddef>

#include "server/server.h"

namespace valora::server {

// Raises the process's limit for as many connections as `limits` allows, and for other files.
// Returns how many connections it has room for, at most limits.max_connections; fewer are logged.
// per_connection: descriptors that each takes. more: that others than connections take.
size_t connections_within_descriptors(const HttpLimits& limits, size_t per_connection, size_t more);

}  // namespace valora::server
