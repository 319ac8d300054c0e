// Parses calls in Python syntax.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json/json.h"

namespace valora::server {

struct PythonCall {
  std::string name;
  OrderedJson arguments;  // an object
};

// `text` is a call with literal keyword arguments: f(a=1, b=["x", None]). Returns nullopt for
// anything else, and for nesting deeper than 64 levels.
std::optional<PythonCall> parse_python_call(std::string_view text);

}  // namespace valora::server
