// Attributes, items and iteration, as jinja2's sandbox and Python have them.
#pragma once

#include "jinja/runtime.h"
#include "jinja/values/value.h"

namespace valora::jinja {

// value.name and value[key]. An attribute (a method, a namespace's variable …) takes precedence
// over an item of the same name. Undefined if there is neither attribute nor item.
Result<Value> get_attribute(Runtime& runtime, const Value& object, const std::string& name);
// An item takes precedence over an attribute of the same name.
Result<Value> get_item(Runtime& runtime, const Value& object, const Value& key);
// "a.0.b": the path in the attribute= argument of filters. An integer selects a single item.
Result<Value> get_path(Runtime& runtime, const Value& object, const Value& path);

class Iterator {
 public:
  // A fault if the value is not iterable.
  static Result<Iterator> over(const Value& value);
  Result<std::optional<Value>> next(Budget& budget);

 private:
  explicit Iterator(Value value) : value_(std::move(value)) {}
  Value value_;
  size_t position_ = 0;  // in bytes for strings, in items otherwise
};

bool iterable(const Value& value);
// All remaining items.
Result<std::vector<Value>> items_of(Budget& budget, const Value& value);

}  // namespace valora::jinja
