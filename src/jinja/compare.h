// Equality, order and membership as Python has them.
#pragma once

#include "jinja/value.h"

namespace valora::jinja {

Result<bool> equal(Budget& budget, const Value& a, const Value& b);
// Negative, zero or positive; what has no order ("<" between str and int) is a fault. Nan is
// unordered and gives 2.
Result<int> order(Budget& budget, const Value& a, const Value& b, std::string_view sign = "<");
// a in b
Result<bool> contains(Budget& budget, const Value& container, const Value& item);
// Python's `is`, as far as it does not depend on how Python keeps its objects.
bool same_object(const Value& a, const Value& b);
// Of hashable values only.
bool same_key(const Value& a, const Value& b);

}  // namespace valora::jinja
