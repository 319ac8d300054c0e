#include "server/http/allowed_hosts.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

#include "server/http/http.h"

namespace valora::server {
namespace {

struct HostAndPort {
  std::string host;  // an IPv6 address in its shortest form, without brackets
  std::string_view port;
};

std::optional<std::string> ipv6(std::string_view text) {
  in6_addr address{};
  if (::inet_pton(AF_INET6, std::string(text).c_str(), &address) != 1) return std::nullopt;
  std::array<char, INET6_ADDRSTRLEN> shortest{};
  ::inet_ntop(AF_INET6, &address, shortest.data(), shortest.size());
  return shortest.data();
}

// A name or an IPv4 address: RFC 3986's reg-name.
bool is_name(std::string_view text) {
  constexpr std::string_view kOthers = "-._~!$&'()*+,;=%";
  return std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kOthers.find(c) != kOthers.npos;
  });
}

// "" or ":" and a port, which may be empty.
std::optional<std::string_view> port_in(std::string_view rest) {
  if (rest.empty()) return rest;
  if (rest[0] != ':') return std::nullopt;
  const std::string_view port = rest.substr(1);
  uint16_t number = 0;
  const auto [end, fault] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (!port.empty() && (fault != std::errc() || end != port.data() + port.size()))
    return std::nullopt;
  return port;
}

// Only IPv6 addresses have brackets, and they always do.
std::optional<HostAndPort> split_host(std::string_view text) {
  if (text.starts_with('[')) {
    const size_t close = std::min(text.find(']'), text.size() - 1);
    const auto address = ipv6(text.substr(1, close - 1));
    const auto port = port_in(text.substr(close + 1));
    if (text[close] != ']' || !address || !port) return std::nullopt;
    return HostAndPort{*address, *port};
  }
  const size_t colon = std::min(text.find(':'), text.size());
  std::string_view host = text.substr(0, colon);
  const auto port = port_in(text.substr(colon));
  if (!port || !is_name(host) || (host.empty() && colon < text.size())) return std::nullopt;
  if (host.ends_with('.')) host.remove_suffix(1);
  return HostAndPort{std::string(host), *port};
}

// In a list, an IPv6 address may stand without brackets.
std::optional<HostAndPort> split_entry(std::string_view text) {
  if (auto address = ipv6(text)) return HostAndPort{*std::move(address), {}};
  return split_host(text);
}

bool matches(const HostAndPort& given, const HostAndPort& entry) {
  if (!entry.port.empty() && entry.port != given.port) return false;
  if (!entry.host.starts_with("*.")) return same_header_name(given.host, entry.host);
  const std::string_view host = given.host, tail = std::string_view(entry.host).substr(1);
  return host.size() > tail.size() &&
         same_header_name(host.substr(host.size() - tail.size()), tail);
}

}  // namespace

bool is_host(std::string_view text) { return split_host(text).has_value(); }

bool is_host_entry(std::string_view text) {
  const auto entry = split_entry(text);
  return entry && !entry->host.empty();
}

bool host_allowed(std::string_view host, const std::vector<std::string>& allowed) {
  if (allowed.empty()) return true;
  const auto given = split_host(host);
  return given && std::ranges::any_of(allowed, [&](const std::string& text) {
           const auto entry = split_entry(text);
           return entry && matches(*given, *entry);
         });
}

}  // namespace valora::server
