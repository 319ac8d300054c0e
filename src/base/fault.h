// Converts exceptions to errors, even when there is no memory left to describe them.
#pragma once

#include <exception>
#include <string_view>

#include "base/result.h"

namespace valora {

// Never allocates: the message fits std::string's inline buffer.
inline Error out_of_memory() noexcept { return {ErrorCode::kUnavailable, "out of memory", {}}; }

// kInternal with the message "what: reason"; out_of_memory() if building that message fails.
Error fault(std::string_view what, std::string_view reason) noexcept;
// The same with the exception's message; out_of_memory() for std::bad_alloc.
Error fault(std::string_view what, const std::exception& e) noexcept;

// A copy of the error; out_of_memory() if copying fails.
Error copy_of(const Error& error) noexcept;

}  // namespace valora
