// Formats the results of `valora bench trace` as text and as JSON.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "lab/trace/summary.h"
#include "lab/trace/timeline.h"
#include "lab/trace/trace_point.h"

namespace valora::bench {

struct ComparedTrace {
  TracePoint point;
  std::string system;
  TraceSummary summary;  // mean of the rounds
  // Seconds in each round: as measured, and scaled to the machine speed at which the costs were
  // measured (TraceSummary::cost_correction).
  std::vector<double> token_latencies, at_costs_speed;
  // Medians over the rounds of these values relative to those of the point's first system in the
  // same round.
  double over_first = 1, over_first_at_costs_speed = 1;
  std::optional<Timeline> timeline;  // from the last round
};

// Sets the ratios of a point's rows to its first row.
void compare_rounds(std::span<ComparedTrace> rows);

// A table with one line per row. With several rounds, adds figures relative to the first system.
std::string text_of(const std::vector<ComparedTrace>& rows);
Json json_of(const ComparedTrace& row);

}  // namespace valora::bench
