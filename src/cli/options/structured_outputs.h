// --structured-outputs-config: vLLM's options of structured output in one JSON object.
#pragma once

#include <optional>
#include <string>

#include "base/json/json_spacing.h"
#include "base/result.h"

namespace valora::cli {

// The white space that the object asks for in JSON, if any. Settings that would change answers and
// are not supported are kInvalidArgument, with their key; settings that change none are accepted.
Result<std::optional<JsonSpacing>> read_structured_outputs(const std::string& text);

}  // namespace valora::cli
