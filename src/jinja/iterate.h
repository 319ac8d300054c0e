// Going through what Python can iterate over.
#pragma once

#include "jinja/value.h"

namespace valora::jinja {

class Iterator {
 public:
  // A fault where the value cannot be iterated over.
  static Result<Iterator> over(const Value& value);
  Result<std::optional<Value>> next(Budget& budget);

 private:
  explicit Iterator(Value value) : value_(std::move(value)) {}
  Value value_;
  size_t position_ = 0;  // bytes of a string, items of the others
};

bool iterable(const Value& value);
// All (that are left) of them.
Result<std::vector<Value>> items_of(Budget& budget, const Value& value);

}  // namespace valora::jinja
