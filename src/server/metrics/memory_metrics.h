// Metrics of the pool that adapters and KV cache share.
#pragma once

#include <prometheus/labels.h>
#include <prometheus/metric_family.h>

#include <vector>

#include "api/stats.h"

namespace valora::server {

// Appends the pool's metrics to `out`, each with `labels`.
void add_memory_metrics(const MemoryStats& memory, const prometheus::Labels& labels,
                        std::vector<prometheus::MetricFamily>& out);

}  // namespace valora::server
