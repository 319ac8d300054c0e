// Python's two ways to format strings.
#pragma once

#include "jinja/values/value.h"

namespace valora::jinja {

// "%s of %d" % values: a tuple's items, a dict's values by name, or the one value.
Result<Value> format_percent(Budget& budget, std::string_view form, const Value& values);
// "{} of {name}".format(…): positions, names, !s and !r. A format after ':' is not supported.
Result<Value> format_braces(Budget& budget, std::string_view form, const CallArgs& args);

}  // namespace valora::jinja
