// Serializes JSON for clients: keys in insertion order, no spaces, always valid UTF-8.
#pragma once

#include <string>

#include "base/json/json.h"

namespace valora::server {

// Bytes that are not valid UTF-8 become U+FFFD.
inline std::string to_text(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace valora::server
