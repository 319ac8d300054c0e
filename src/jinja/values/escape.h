// Escapes HTML's special characters, as jinja2's filter `escape`.
#pragma once

#include "jinja/values/value.h"

namespace valora::jinja {

// A value's text, escaped and marked as safe. Text that is already marked is not escaped again.
Result<Value> escaped(Budget& budget, const Value& value);

}  // namespace valora::jinja
