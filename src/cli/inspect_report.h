// Formats the reports of `valora inspect` as text and as JSON. proof: null if nothing was measured.
#pragma once

#include <string>

#include "base/json/json.h"
#include "cli/prove_adapters.h"
#include "engine/inspect/inspect.h"

namespace valora::cli {

std::string inspect_text(const ModelReport& report);
std::string inspect_text(const AdapterReport& report, const AdapterProof* proof);
Json inspect_json(const ModelReport& report);
Json inspect_json(const AdapterReport& report, const AdapterProof* proof);

}  // namespace valora::cli
