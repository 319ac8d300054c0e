// Metrics of individual adapters: where their weights are, and the work of the busiest. The number
// of series is bounded, however many adapters are loaded.
#pragma once

#include <prometheus/labels.h>
#include <prometheus/metric_family.h>

#include <vector>

#include "api/cards.h"
#include "api/stats.h"
#include "server/metrics/adapter_counts.h"

namespace valora::server {

// Number of adapters with a series for their location: those in the pool first, then pinned ones,
// then the busiest.
inline constexpr size_t kMostPlaced = 256;
// Number of adapters with their own counters and latencies.
inline constexpr size_t kMostBusy = 20;

// Appends the metrics of adapters to `out`, each with `labels`.
void add_adapter_metrics(const std::vector<AdapterCard>& adapters, const MemoryStats& memory,
                         const AdapterCounts& counts, const prometheus::Labels& labels,
                         std::vector<prometheus::MetricFamily>& out);

}  // namespace valora::server
