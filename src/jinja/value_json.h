// JSON as values of templates. Objects keep the order that Json has (by key).
#pragma once

#include "base/json.h"
#include "jinja/value.h"

namespace valora::jinja {

Result<Value> from_json(Budget& budget, const Json& json, int depth = 0);

}  // namespace valora::jinja
