#include "server/http/allowed_hosts.h"

#include <algorithm>

#include "server/http/http.h"

namespace valora::server {
namespace {

struct HostAndPort {
  std::string_view host, port;
};

HostAndPort split_host(std::string_view text) {
  HostAndPort out{text, {}};
  const size_t colon = text.rfind(':');
  const bool bracketed = text.starts_with('[');
  const bool has_port =
      colon != text.npos && (bracketed ? text[colon - 1] == ']' : text.find(':') == colon);
  if (has_port) out = {text.substr(0, colon), text.substr(colon + 1)};
  if (bracketed && out.host.ends_with(']')) out.host = out.host.substr(1, out.host.size() - 2);
  if (out.host.ends_with('.')) out.host.remove_suffix(1);
  return out;
}

bool matches(const HostAndPort& given, const HostAndPort& entry) {
  if (!entry.port.empty() && entry.port != given.port) return false;
  if (!entry.host.starts_with("*.")) return same_header_name(given.host, entry.host);
  const std::string_view tail = entry.host.substr(1);
  return given.host.size() > tail.size() &&
         same_header_name(given.host.substr(given.host.size() - tail.size()), tail);
}

}  // namespace

bool host_allowed(std::string_view host, const std::vector<std::string>& allowed) {
  if (allowed.empty()) return true;
  const HostAndPort given = split_host(host);
  return std::ranges::any_of(
      allowed, [&](const std::string& entry) { return matches(given, split_host(entry)); });
}

}  // namespace valora::server
