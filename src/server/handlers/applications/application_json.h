// Serializes applications and latencies for /v1/applications and /v1/stats.
#pragma once

#include "api/stats.h"
#include "base/json/json.h"
#include "server/applications/applications.h"
#include "server/metrics/recent_latencies.h"

namespace valora::server {

OrderedJson application_json(const ServedApplication& application, const EngineStats& stats);
// In seconds; null if there are no answers.
OrderedJson latency_json(const RecentLatencies::Summary& latencies);

}  // namespace valora::server
