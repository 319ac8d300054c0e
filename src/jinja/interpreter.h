// Parses templates, and renders them with their variables.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "jinja/runtime.h"
#include "jinja/syntax/ast.h"

namespace valora::jinja {

// Parses a template's source. Unsupported constructs are refused by name and line.
Result<Template> parse(std::string_view source);

using Variables = std::unordered_map<std::string, Value>;

// The rendered text, or the fault that ended it: the template's own message if it raised one,
// otherwise a message with the line.
Result<std::string> render(const Template& source, Runtime& runtime, const Variables& variables);

}  // namespace valora::jinja
