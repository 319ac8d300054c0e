// Source to template. What this language does not have here is refused by its name and line.
#pragma once

#include <string_view>

#include "jinja/ast.h"

namespace valora::jinja {

Result<Template> parse(std::string_view source);

}  // namespace valora::jinja
