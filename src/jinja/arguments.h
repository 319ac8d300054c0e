// The arguments of a call by the parameters they are for.
#pragma once

#include <initializer_list>

#include "jinja/value.h"

namespace valora::jinja {

// One entry a parameter, absent ones nullopt; the first `required` must be there.
using Bound = std::vector<std::optional<Value>>;
Result<Bound> bind(std::string_view function, std::initializer_list<std::string_view> parameters,
                   size_t required, CallArgs args);

Result<std::string_view> expect_string(const Value& value, std::string_view what);
Result<int64_t> expect_integer(const Value& value, std::string_view what);
// A string, an integer or the fallback where it is absent or none.
Result<std::optional<std::string_view>> optional_string(const std::optional<Value>& value,
                                                        std::string_view what);
Result<int64_t> integer_or(const std::optional<Value>& value, int64_t fallback,
                           std::string_view what);
bool truth_or(const std::optional<Value>& value, bool fallback);
// Using an undefined value where a defined one is needed.
Error undefined_fault(const Value& value);

}  // namespace valora::jinja
