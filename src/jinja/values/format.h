// Values as text: Python's str(), repr() and json.dumps().
#pragma once

#include "jinja/values/value.h"

namespace valora::jinja {

// Values that Python prints with their address (functions, iterators) are faults.
Result<std::string> to_text(Budget& budget, const Value& value);
Result<std::string> to_repr(Budget& budget, const Value& value);
std::string float_text(double value);  // 1.0, 1e-05, inf
std::string string_repr(std::string_view text);

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;  // indentation per level; nullopt: everything on one line
  std::string item_separator = ", ", key_separator = ": ";
};
Result<std::string> to_json(Budget& budget, const Value& value, const JsonStyle& style);

// Python's two ways to format strings.

// "%s of %d" % values: a tuple's items, a dict's values by name, or the one value.
Result<Value> format_percent(Budget& budget, std::string_view form, const Value& values);
// "{} of {name}".format(…): positions, names, !s and !r. A format after ':' is not supported.
Result<Value> format_braces(Budget& budget, std::string_view form, const CallArgs& args);

}  // namespace valora::jinja
