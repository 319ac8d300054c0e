// Parses a template's source. Unsupported constructs are refused by name and line.
#pragma once

#include <string_view>

#include "jinja/syntax/ast.h"

namespace valora::jinja {

Result<Template> parse(std::string_view source);

}  // namespace valora::jinja
