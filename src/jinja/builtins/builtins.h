// The filters, tests and methods that templates may use.
#pragma once

#include "jinja/runtime.h"

namespace valora::jinja {

// value | filter(arguments)
bool is_filter(std::string_view name);
Result<Value> apply_filter(Runtime& runtime, const std::string& name, const Value& subject,
                           CallArgs args);

using FilterFunction = Result<Value> (*)(Runtime& runtime, const Value& subject, CallArgs args);
// Filters by group; null for names outside the group.
FilterFunction text_filter(std::string_view name);
FilterFunction number_filter(std::string_view name);
FilterFunction sequence_filter(std::string_view name);
FilterFunction order_filter(std::string_view name);   // sort, min, unique …
FilterFunction select_filter(std::string_view name);  // map, select …

// value is test(arguments)
bool is_test(std::string_view name);
Result<bool> apply_test(Runtime& runtime, const std::string& name, const Value& value,
                        const CallArgs& args);

// The methods of strings, lists and dicts.

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
