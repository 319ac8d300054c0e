// Checks the Host header. This defeats DNS rebinding, where an attacker's domain name resolves to
// this machine: such requests carry the attacker's name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace valora::server {

// True if a Host header ("example.org:8000") is in the list. Entries are names or addresses. An
// entry with a port allows only that port. "*.example.org" allows all subdomains. An empty list
// allows everything.
bool host_allowed(std::string_view host, const std::vector<std::string>& allowed);

}  // namespace valora::server
