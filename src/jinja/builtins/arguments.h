// Binds the arguments of a call to parameters.
#pragma once

#include <initializer_list>

#include "jinja/values/value.h"

namespace valora::jinja {

// One entry per parameter, nullopt if absent. The first `required` must be present.
using Bound = std::vector<std::optional<Value>>;
Result<Bound> bind(std::string_view function, std::initializer_list<std::string_view> parameters,
                   size_t required, CallArgs args);

Result<std::string_view> expect_string(const Value& value, std::string_view what);
Result<int64_t> expect_integer(const Value& value, std::string_view what);
// A string or an integer; the fallback if the value is absent or none.
Result<std::optional<std::string_view>> optional_string(const std::optional<Value>& value,
                                                        std::string_view what);
Result<int64_t> integer_or(const std::optional<Value>& value, int64_t fallback,
                           std::string_view what);
bool truth_or(const std::optional<Value>& value, bool fallback);
// The error of using an undefined value where a defined one is required.
Error undefined_fault(const Value& value);

}  // namespace valora::jinja
