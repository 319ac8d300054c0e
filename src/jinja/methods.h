// The methods of strings, lists and dicts.
#pragma once

#include "jinja/runtime.h"

namespace valora::jinja {

// Methods that Python's types have and this implementation does not. A template that calls one is
// refused.
bool is_unsupported_method(std::string_view name);
// A value's method, bound to it; nullopt if its type has none of that name. Methods that would
// change a value are undefined, as in jinja2's immutable sandbox.
Result<std::optional<Value>> method_of(const Value& value, const std::string& name);

using Method = Result<Value> (*)(Runtime& runtime, const Value& self, CallArgs args);
Method string_method(std::string_view name);  // null for unknown names
Method list_method(std::string_view name);    // of lists, tuples and ranges
Method dict_method(std::string_view name);

}  // namespace valora::jinja
