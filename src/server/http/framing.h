// Rejects request headers that other servers could read differently. A proxy and this server must
// agree on where a request ends, or part of its body could be run as the next request, and on who
// sent it.
#pragma once

#include <optional>
#include <string>

#include "server/http/http.h"

namespace valora::server {

struct FramingFault {
  int status = 400;  // 417: unknown expectation; 501: transfer coding other than chunked
  std::string message;
};

// Checks Host, Authorization, Expect, Content-Length and Transfer-Encoding. After a fault the
// connection must be closed.
std::optional<FramingFault> framing_fault(const Headers& headers, bool http11);

}  // namespace valora::server
