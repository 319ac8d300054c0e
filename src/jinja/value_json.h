// JSON as template values. Objects keep the order of Json (by key).
#pragma once

#include "base/json.h"
#include "jinja/value.h"

namespace valora::jinja {

Result<Value> from_json(Budget& budget, const Json& json, int depth = 0);

}  // namespace valora::jinja
