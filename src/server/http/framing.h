// Refuses request headers that other servers could read differently. A proxy and this server must
// agree on where a request ends: else its body is run as the next request; and on whose it is.
#pragma once

#include <optional>
#include <string>

#include "server/http/http.h"

namespace valora::server {

struct FramingFault {
  int status = 400;  // 417: an unknown expectation; 501: a transfer coding other than chunked
  std::string message;
};

// Checks Host, Authorization, Expect, Content-Length and Transfer-Encoding. The connection of a
// fault must be closed.
std::optional<FramingFault> framing_fault(const Headers& headers, bool http11);

}  // namespace valora::server
