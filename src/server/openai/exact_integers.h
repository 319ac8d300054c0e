// Integers that templates write into prompts. A parsed tree holds those beyond 64 bits as rounded
// floats, which would be other numbers.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/result.h"

namespace valora::server {

// kInvalidArgument, with `param`, if the JSON text has an integer below -2^63 or above 2^64 - 1.
Status check_integers(std::string_view text, const std::string& param);
// The same in these fields of a body, an object; param is the field.
Status check_integers_of(std::string_view body, std::initializer_list<std::string_view> fields);

}  // namespace valora::server
