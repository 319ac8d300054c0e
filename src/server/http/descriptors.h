// The limit on open files.
#pragma once

#include <cstddef>

#include "server/server.h"

namespace valora::server {

// Raises the process's limit to fit as many connections as `limits` allows, plus other files.
// Returns how many connections fit, at most limits.max_connections, and logs if that is fewer.
// per_connection: descriptors that each connection takes. more: descriptors needed for anything
// else.
size_t connections_within_descriptors(const HttpLimits& limits, size_t per_connection, size_t more);

}  // namespace valora::server
