// value.name and value[key], as jinja2's sandbox resolves them.
#pragma once

#include "jinja/runtime.h"

namespace valora::jinja {

// The attribute (a method, a namespace's …) before the item of that name; undefined where there is
// neither.
Result<Value> get_attribute(Runtime& runtime, const Value& object, const std::string& name);
// The item before the attribute.
Result<Value> get_item(Runtime& runtime, const Value& object, const Value& key);
// "a.0.b": the path of the attribute= arguments of filters; an integer is one item.
Result<Value> get_path(Runtime& runtime, const Value& object, const Value& path);

}  // namespace valora::jinja
