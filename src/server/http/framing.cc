#include "server/http/framing.h"

#include <fmt/format.h>

#include <string_view>

#include "base/text/strings.h"
#include "base/text/visible_text.h"
#include "server/http/allowed_hosts.h"

namespace valora::server {
namespace {

struct Found {
  int count = 0;
  std::string_view value;  // of the last occurrence
};

Found find(const Headers& headers, std::string_view name) {
  Found found;
  for (const auto& [key, value] : headers)
    if (same_header_name(key, name)) {
      ++found.count;
      found.value = value;
    }
  return found;
}

}  // namespace

std::optional<FramingFault> framing_fault(const Headers& headers, bool http11) {
  const Found host = find(headers, "host");
  if (host.count > 1) return FramingFault{400, "the request has more than one Host header"};
  if (http11 && host.count == 0) return FramingFault{400, "the request has no Host header"};
  if (!is_host(host.value))
    return FramingFault{400, fmt::format("the Host header \"{}\" is not a host: send a name or an "
                                         "address, IPv6 ones in brackets",
                                         shortened(visible(host.value), 60))};
  if (find(headers, "authorization").count > 1)
    return FramingFault{400, "the request has more than one Authorization header"};
  if (http11)
    for (const auto& [key, value] : headers)
      if (same_header_name(key, "expect") && !same_header_name(value, "100-continue"))
        return FramingFault{417, fmt::format("the expectation \"{}\" is not supported; send "
                                             "100-continue or none",
                                             shortened(value, 40))};
  const Found length = find(headers, "content-length");
  if (length.count > 1 || length.value.find(',') != length.value.npos)
    return FramingFault{400, "the request has more than one Content-Length"};
  const Found coding = find(headers, "transfer-encoding");
  if (coding.count == 0) return std::nullopt;
  if (!http11) return FramingFault{400, "HTTP/1.0 has no Transfer-Encoding; send Content-Length"};
  if (length.count > 0)
    return FramingFault{400, "the request has both Content-Length and Transfer-Encoding"};
  if (coding.count > 1 || !same_header_name(coding.value, "chunked"))
    return FramingFault{
        501, fmt::format("the Transfer-Encoding \"{}\" is not supported; use chunked alone",
                         shortened(coding.value, 40))};
  return std::nullopt;
}

}  // namespace valora::server
