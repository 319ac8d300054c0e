// Summary figures of a run.
#pragma once

#include <span>
#include <vector>

#include "base/json/json.h"
#include "lab/ops/measurement.h"

namespace valora::bench {

// 0 if there are no values.
double geometric_mean(std::span<const double> values);

// Keys, for operation O and rival R:
//   O_vs_R_geomean, O_vs_R_worst        R's time / our time
//   O_share_of_limit_geomean, …_worst   our share of the machine's limit
//   merge_vs_bandwidth_bound, …_worst   our time / the bandwidth bound
//   modes_M_over_base, …_worst          time in mode M / without adapters
//   paged_adapters_over_together, …_worst   time with paged adapters / with one allocation each
//   atmm_spread       per contender: p90 / p50 over the shapes that differ only in rank and
//                     popularity, geometric mean over hidden sizes and token counts (figure 18)
//   atmm_fluctuation  per contender: p90 - p50 over the same shapes, relative to ours
//   atmm_jitter       per contender: p90 / p50 over the runs of one shape
// The fixed keys of the first kind are null if nothing was measured for them.
Json summarize_ops(std::span<const Measurement> measurements);

}  // namespace valora::bench
