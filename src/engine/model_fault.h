// What torch's exceptions say, and what is left of the device after one.
#pragma once

#include <exception>
#include <stdexcept>
#include <string_view>

#include "base/result.h"
#include "ops/launched_work.h"

namespace valora {

// The message of an exception, without the backtrace that torch appends to its own.
const char* reason_of(const std::exception& e) noexcept;
// Whether it says that there is no memory, on the host or on a device.
bool lacks_memory(const std::exception& e) noexcept;
// fault() (base/fault.h) with this message.
Error model_fault(std::string_view what, const std::exception& e) noexcept;

// The device answers no call any more: no step can run, and another process may do better.
struct LostDevice : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// After `e`: waits for what was launched. Throws LostDevice if that fails as well, as it does after
// each error that a GPU does not get over (an illegal address, a memory error, a launch that timed
// out).
void check_device(ops::LaunchedWork& launched, const std::exception& e);

}  // namespace valora
