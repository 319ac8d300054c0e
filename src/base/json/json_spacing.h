// The white space allowed between tokens of JSON answers.
#pragma once

#include <cstdint>

namespace valora {

enum class JsonSpacing : uint8_t {
  kBounded,  // at most a space; or, after "{", "[" and "," and before "}" and "]", one line break
             // with indentation; nothing before ","
  kCompact,  // one line, with ", " and ": "
  kFree,     // any
};

}  // namespace valora
