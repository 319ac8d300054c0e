// The results of `valora bench trace` as text and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "bench/trace/summary.h"
#include "bench/trace/timeline.h"
#include "cli/trace_point.h"

namespace valora::cli {

struct ComparedTrace {
  TracePoint point;
  std::string system;
  bench::TraceSummary summary;              // the mean of the rounds
  std::vector<double> token_latencies;      // seconds, one per round
  std::optional<bench::Timeline> timeline;  // of the last round
};

// A table, one row each.
std::string text_of(const std::vector<ComparedTrace>& rows);
Json json_of(const ComparedTrace& row);

}  // namespace valora::cli
