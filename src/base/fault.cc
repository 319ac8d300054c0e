#include "base/fault.h"

#include <new>
#include <string>

namespace valora {

Error fault(std::string_view what, std::string_view reason) noexcept {
  try {
    return internal(std::string(what).append(": ").append(reason));
  } catch (const std::exception&) {
    return out_of_memory();
  }
}

Error fault(std::string_view what, const std::exception& e) noexcept {
  if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr) return out_of_memory();
  return fault(what, e.what());
}

Error copy_of(const Error& error) noexcept {
  try {
    return error;
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

}  // namespace valora
