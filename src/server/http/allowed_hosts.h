// Which hosts requests may be for. A page whose name an attacker points to this machine (DNS
// rebinding) sends that name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace valora::server {

// True if a Host header ("example.org:8000") is in the list. Entries are names or addresses. An
// entry with a port allows this port only. "*.example.org" allows all names below. An empty list
// allows all.
bool host_allowed(std::string_view host, const std::vector<std::string>& allowed);

}  // namespace valora::server
