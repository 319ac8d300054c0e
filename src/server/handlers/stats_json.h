// The JSON of /v1/stats, from what the engine and the metrics count.
#pragma once

#include <cstdint>

#include "base/json.h"
#include "server/handlers/service.h"

namespace valora::server {

inline constexpr uint64_t kMostSteps = 128;  // entries of steps.last

// All but the adapters. `user`, null for nobody, sees its own applications alone. `last_step`: the
// number of the last step that the reader knows; becomes that of the last one listed.
OrderedJson stats_json(const Service& service, const ServedUser* user, uint64_t& last_step);
// One object for each adapter name that the user may ask.
OrderedJson adapter_stats_json(const Service& service, const ServedUser* user);

}  // namespace valora::server
