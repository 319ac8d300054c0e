// Operators on values as in Python.
#pragma once

#include "jinja/syntax/ast.h"
#include "jinja/values/value.h"

namespace valora::jinja {

// Arithmetic.
Result<Value> apply(Budget& budget, Binary::Op op, const Value& left, const Value& right);
Result<Value> apply(Unary::Op op, const Value& operand);

Result<bool> equal(Budget& budget, const Value& a, const Value& b);
// Negative, zero or positive. A fault if the values have no order ("<" between str and int).
// Returns 2 for NaN, which is unordered.
Result<int> order(Budget& budget, const Value& a, const Value& b, std::string_view sign = "<");
// a in b
Result<bool> contains(Budget& budget, const Value& container, const Value& item);
// Python's `is`, except where the result depends on how Python stores its objects.
bool same_object(const Value& a, const Value& b);
// For hashable values only.
bool same_key(const Value& a, const Value& b);

}  // namespace valora::jinja
