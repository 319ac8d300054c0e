// Runs a template over its variables.
#pragma once

#include <string>
#include <unordered_map>

#include "jinja/ast.h"
#include "jinja/runtime.h"

namespace valora::jinja {

using Variables = std::unordered_map<std::string, Value>;

// The text, or the fault that ended it: the template's own message where it raised one, else with
// its line.
Result<std::string> render(const Template& source, Runtime& runtime, const Variables& variables);

}  // namespace valora::jinja
