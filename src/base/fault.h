// From exceptions to errors, also where there is no memory to describe one.
#pragma once

#include <exception>
#include <string_view>

#include "base/result.h"

namespace valora {

// Never allocates: std::string holds so short a message within itself.
inline Error out_of_memory() noexcept { return {ErrorCode::kUnavailable, "out of memory", {}}; }

// kInternal, "what: reason"; out_of_memory() if there is no memory for that.
Error fault(std::string_view what, std::string_view reason) noexcept;
// The same with the exception's message; out_of_memory() for a failed allocation.
Error fault(std::string_view what, const std::exception& e) noexcept;

// The error, or out_of_memory() if there is no memory for the copy.
Error copy_of(const Error& error) noexcept;

}  // namespace valora
