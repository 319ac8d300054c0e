#include "engine/runner/model_fault.h"

#include <c10/util/Exception.h>

#include <cstring>
#include <new>
#include <string>

#include "base/fault.h"

namespace valora {

const char* reason_of(const std::exception& e) noexcept {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&e);
  return torch_error ? torch_error->what_without_backtrace() : e.what();
}

bool is_out_of_memory(const std::exception& e) noexcept {
  // torch's allocators have no exception type for this.
  if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr) return true;
  for (const char* sign : {"can't allocate memory", "out of memory"})
    if (std::strstr(reason_of(e), sign) != nullptr) return true;
  return false;
}

Error model_fault(std::string_view what, const std::exception& e) noexcept {
  return is_out_of_memory(e) ? out_of_memory() : fault(what, reason_of(e));
}

void check_device(ops::LaunchedWork& launched, const std::exception& e) {
  try {
    launched.wait();
  } catch (const std::exception& again) {
    throw DeviceLostError(std::string("the device fails: ") + reason_of(e) +
                          "; and when waited for: " + reason_of(again));
  }
}

}  // namespace valora
