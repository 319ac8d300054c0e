#pragma once

#include <string>
#include <string_view>

namespace valora {

// For URLs: bytes other than ASCII letters, digits, "-._~" and those of `kept` as %XX.
std::string percent_encoded(std::string_view text, std::string_view kept = "");

}  // namespace valora
