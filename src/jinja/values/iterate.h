// Iteration as in Python.
#pragma once

#include "jinja/values/value.h"

namespace valora::jinja {

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
