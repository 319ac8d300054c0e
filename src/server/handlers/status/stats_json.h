// Builds the JSON of /v1/stats and of /v1/applications from the counters of the engine and the
// metrics.
#pragma once

#include <cstdint>

#include "api/stats.h"
#include "base/json/json.h"
#include "server/applications/applications.h"
#include "server/handlers/service.h"
#include "server/handlers/viewer.h"
#include "server/metrics/recent_latencies.h"

namespace valora::server {

inline constexpr uint64_t kMostSteps = 128;  // entries in steps.last

// Everything except the adapters. `user` sees only its own applications and streams; null: no
// particular user. `last_step`: in, the last step the reader knows; out, the last step listed.
OrderedJson stats_json(const Service& service, const ServedUser* user, uint64_t& last_step);
// One object for each adapter name that the viewer may see.
OrderedJson adapter_stats_json(const Service& service, const Viewer& viewer);

OrderedJson application_json(const ServedApplication& application, const EngineStats& stats);
// In seconds; null if there are no answers.
OrderedJson latency_json(const RecentLatencies::Summary& latencies);

}  // namespace valora::server
