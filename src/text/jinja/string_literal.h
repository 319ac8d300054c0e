// The escapes of a string literal.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace valora::text::jinja {

Result<std::string> unescape(std::string_view literal);

}  // namespace valora::text::jinja
