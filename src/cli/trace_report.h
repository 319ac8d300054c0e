// The results of `valora bench trace` as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "bench/trace/summary.h"

namespace valora::cli {

struct ComparedTrace {
  double skewness = 0;
  std::string system;
  bench::TraceSummary summary;
};

// A table, one row each.
std::string text_of(const std::vector<ComparedTrace>& rows);
Json json_of(const ComparedTrace& row);

}  // namespace valora::cli
