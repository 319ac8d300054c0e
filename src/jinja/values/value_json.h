// Converts JSON to template values. Objects keep the order of the given type.
#pragma once

#include "base/json/json.h"
#include "jinja/values/value.h"

namespace valora::jinja {

Result<Value> from_json(Budget& budget, const Json& json, int depth = 0);
Result<Value> from_json(Budget& budget, const OrderedJson& json, int depth = 0);

}  // namespace valora::jinja
