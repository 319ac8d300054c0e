// value is test(arguments)
#pragma once

#include "jinja/runtime.h"

namespace valora::jinja {

bool is_test(std::string_view name);
Result<bool> apply_test(Runtime& runtime, const std::string& name, const Value& value,
                        const CallArgs& args);

}  // namespace valora::jinja
