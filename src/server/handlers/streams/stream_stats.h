// The streams in /v1/stats.
#pragma once

#include "base/json/json.h"
#include "server/handlers/service.h"

namespace valora::server {

// The streams that `user` sees, by state and one by one; null for a user: all streams. Returns null
// if the server takes no streams.
OrderedJson stream_stats_json(const Service& service, const ServedUser* user);

}  // namespace valora::server
