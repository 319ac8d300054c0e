// The methods of strings, lists and dicts.
#pragma once

#include "jinja/runtime.h"

namespace valora::jinja {

// Methods of Python's types that are not implemented here. A template that calls one is refused.
bool is_unsupported_method(std::string_view name);
// A value's bound method; nullopt if its type has none of that name. Mutating methods are
// undefined, as in jinja2's immutable sandbox.
Result<std::optional<Value>> method_of(const Value& value, const std::string& name);

using Method = Result<Value> (*)(Runtime& runtime, const Value& self, CallArgs args);
Method string_method(std::string_view name);  // null for unknown names
Method list_method(std::string_view name);    // for lists, tuples and ranges
Method dict_method(std::string_view name);

}  // namespace valora::jinja
