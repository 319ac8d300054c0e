// Interprets torch's exceptions, and checks whether the device survived one.
#pragma once

#include <exception>
#include <stdexcept>
#include <string_view>

#include "base/result.h"
#include "ops/launch/launched_work.h"

namespace valora {

// The message of an exception without torch's backtrace.
const char* reason_of(const std::exception& e) noexcept;
// True if it reports a lack of memory, on the host or on a device.
bool is_out_of_memory(const std::exception& e) noexcept;
// fault() (base/fault.h) with this message.
Error model_fault(std::string_view what, const std::exception& e) noexcept;

// The device no longer answers any call: no step can run, but a new process may succeed.
struct DeviceLostError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// Waits for launched work after exception `e`. Throws DeviceLostError if that fails too, as it does
// after every error that a GPU cannot recover from (illegal address, memory error, launch timeout).
void check_device(ops::LaunchedWork& launched, const std::exception& e);

}  // namespace valora
