// --structured-outputs-config: vLLM's options of structured output in one JSON object.
#pragma once

#include <optional>
#include <string>

#include "base/json_spacing.h"
#include "base/result.h"

namespace valora::cli {

// The white space of JSON that it asks for, if any. kInvalidArgument for what would change answers
// and is not served, by its key; what changes none is accepted.
Result<std::optional<JsonSpacing>> read_structured_outputs(const std::string& text);

}  // namespace valora::cli
