// Formats the reports of `valora inspect` as text and as JSON.
#pragma once

#include <string>

#include "base/json/json.h"
#include "engine/inspect/inspect.h"

namespace valora::cli {

std::string inspect_text(const ModelReport& report);
std::string inspect_text(const AdapterReport& report);
Json inspect_json(const ModelReport& report);
Json inspect_json(const AdapterReport& report);

}  // namespace valora::cli
