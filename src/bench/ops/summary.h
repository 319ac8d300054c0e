// From a run's measurements to its few figures.
#pragma once

#include <span>
#include <vector>

#include "base/json.h"
#include "bench/ops/measurement.h"

namespace valora::bench {

// 0 where there are none.
double geometric_mean(std::span<const double> values);

// For every operation O and rival R: "O_vs_R_geomean" and "O_vs_R_worst" of R's time / ours; of the
// machine's limit "O_share_of_limit_geomean" and "…_worst"; "merge_vs_bandwidth_bound" and
// "…_worst" of our time / the bound. "atmm_spread": of each contender p90 / p50 over the shapes
// that differ in rank and popularity alone, a geometric mean over hidden sizes and token counts
// (VaLoRA figure 18); "atmm_fluctuation": p90 - p50 over the same shapes, in units of ours;
// "atmm_jitter": p90 / p50 over the runs of one shape. Those of the first kind that are always
// there are null where nothing of theirs was measured.
Json summarize_ops(std::span<const Measurement> measurements);

}  // namespace valora::bench
