// The white space between the tokens of answers that are JSON.
#pragma once

#include <cstdint>

namespace valora {

enum class JsonSpacing : uint8_t {
  kBounded,  // a space at most, or after "{", "[" and "," and before "}" and "]" one line break
             // with an indentation; none before ","
  kCompact,  // one line, with ", " and ": "
  kFree,     // any
};

}  // namespace valora
