// Source to template. What this language does not have here is refused by its name and line.
#pragma once

#include <string_view>

#include "text/jinja/ast.h"

namespace valora::text::jinja {

Result<Template> parse(std::string_view source);

}  // namespace valora::text::jinja
