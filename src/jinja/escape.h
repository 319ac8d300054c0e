// HTML's special characters escaped, as by the filter of that name.
#pragma once

#include "jinja/value.h"

namespace valora::jinja {

// The text of any value, escaped and marked; what is marked already stays.
Result<Value> escaped(Budget& budget, const Value& value);

}  // namespace valora::jinja
