// Formats the results of a run as text and as JSON.
#pragma once

#include <string>

#include "base/json/json.h"
#include "lab/serve/load.h"
#include "lab/serve/statistics.h"

namespace valora::bench {

std::string report_text(const ServeLoad& load, const Summary& summary);
Json report_json(const ServeLoad& load, const Summary& summary);

}  // namespace valora::bench
