// Metrics of single adapters: where their weights are, and the work of the busiest. However many
// adapters are loaded, the number of series is bounded.
#pragma once

#include <prometheus/labels.h>
#include <prometheus/metric_family.h>

#include <vector>

#include "api/cards.h"
#include "api/stats.h"
#include "server/metrics/adapter_counts.h"

namespace valora::server {

// Adapters with series of where they are: those in the pool before others, then pinned ones, then
// the busiest.
inline constexpr size_t kMostPlaced = 256;
// Adapters with counters and latencies of their own.
inline constexpr size_t kMostBusy = 20;

// Appends them. `labels` are those of every metric.
void add_adapter_metrics(const std::vector<AdapterCard>& adapters, const MemoryStats& memory,
                         const AdapterCounts& counts, const prometheus::Labels& labels,
                         std::vector<prometheus::MetricFamily>& out);

}  // namespace valora::server
