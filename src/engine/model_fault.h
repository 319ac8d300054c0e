// What torch's exceptions say.
#pragma once

#include <exception>
#include <string_view>

#include "base/result.h"

namespace valora {

// The message of an exception, without the backtrace that torch appends to its own.
const char* reason_of(const std::exception& e) noexcept;
// fault() (base/fault.h) with this message.
Error model_fault(std::string_view what, const std::exception& e) noexcept;

}  // namespace valora
