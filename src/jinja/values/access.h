// value.name and value[key], as jinja2's sandbox resolves them.
#pragma once

#include "jinja/runtime.h"

namespace valora::jinja {

// An attribute (a method, a namespace's variable …) takes precedence over an item of the same name.
// Undefined if there is neither attribute nor item.
Result<Value> get_attribute(Runtime& runtime, const Value& object, const std::string& name);
// An item takes precedence over an attribute of the same name.
Result<Value> get_item(Runtime& runtime, const Value& object, const Value& key);
// "a.0.b": the path in the attribute= argument of filters. An integer selects a single item.
Result<Value> get_path(Runtime& runtime, const Value& object, const Value& path);

}  // namespace valora::jinja
