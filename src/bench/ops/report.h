// A run's figures, for people and for programs.
#pragma once

#include <string>

#include "base/json.h"
#include "bench/ops/ops_bench.h"

namespace valora::bench {

std::string ops_report_text(const OpsRun& run);
// Ends with "summary".
Json ops_report_json(const OpsRun& run);

}  // namespace valora::bench
