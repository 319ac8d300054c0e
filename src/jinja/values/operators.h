// Arithmetic on values.
#pragma once

#include "jinja/syntax/ast.h"

namespace valora::jinja {

Result<Value> apply(Budget& budget, Binary::Op op, const Value& left, const Value& right);
Result<Value> apply(Unary::Op op, const Value& operand);

}  // namespace valora::jinja
