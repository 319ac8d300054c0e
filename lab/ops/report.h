// Formats the report of a run as text and as JSON.
#pragma once

#include <string>

#include "base/json/json.h"
#include "lab/ops/ops_bench.h"

namespace valora::bench {

std::string ops_report_text(const OpsRun& run);
// "summary" is the last key.
Json ops_report_json(const OpsRun& run);

}  // namespace valora::bench
