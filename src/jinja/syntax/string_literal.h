// Resolves the escapes of a string literal.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace valora::jinja {

Result<std::string> unescape(std::string_view rest);

}  // namespace valora::jinja
