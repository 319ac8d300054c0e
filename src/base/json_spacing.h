// The white space between the tokens of answers that are JSON.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace valora {

enum class JsonSpacing : uint8_t {
  kPrinted,  // a space at most, or after "{", "[" and "," and before "}" and "]" one line break
             // with an indentation; none before ","
  kCompact,  // one line, with ", " and ": "
  kFree,     // up to 16 characters anywhere
};

// As in options and requests.
inline constexpr std::array<std::pair<std::string_view, JsonSpacing>, 3> kJsonSpacings = {
    {{"printed", JsonSpacing::kPrinted},
     {"compact", JsonSpacing::kCompact},
     {"free", JsonSpacing::kFree}}};

inline std::optional<JsonSpacing> json_spacing(std::string_view name) {
  for (const auto& [known, spacing] : kJsonSpacings)
    if (known == name) return spacing;
  return {};
}

}  // namespace valora
