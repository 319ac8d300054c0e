// Checks the Host header. This defeats DNS rebinding, where an attacker's domain name resolves to
// this machine: such requests carry the attacker's name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace valora::server {

// True for the value of a Host header as RFC 9110 has it: a name, an IPv4 address or an IPv6
// address in brackets, with or without a port; or nothing.
bool is_host(std::string_view text);
// True for an entry of the list below.
bool is_host_entry(std::string_view text);

// True if a Host header ("example.org:8000") is in the list. Entries are names or addresses, IPv6
// ones with or without brackets. An entry with a port allows only that port. "*.example.org" allows
// all subdomains. An empty list allows everything.
bool host_allowed(std::string_view host, const std::vector<std::string>& allowed);

}  // namespace valora::server
