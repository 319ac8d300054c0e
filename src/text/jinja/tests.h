// value is test(arguments)
#pragma once

#include "text/jinja/runtime.h"

namespace valora::text::jinja {

bool is_test(std::string_view name);
Result<bool> apply_test(Runtime& runtime, const std::string& name, const Value& value,
                        const CallArgs& args);

}  // namespace valora::text::jinja
