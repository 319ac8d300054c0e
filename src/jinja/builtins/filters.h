// value | filter(arguments)
#pragma once

#include "jinja/runtime.h"

namespace valora::jinja {

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

}  // namespace valora::jinja
