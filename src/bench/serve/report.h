// A run's figures, for people and for programs.
#pragma once

#include <string>

#include "base/json.h"
#include "bench/serve/load.h"
#include "bench/serve/statistics.h"

namespace valora::bench {

std::string report_text(const ServeLoad& load, const Summary& summary);
Json report_json(const ServeLoad& load, const Summary& summary);

}  // namespace valora::bench
