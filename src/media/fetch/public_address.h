// Tells public network addresses from private, local and reserved ones.
#pragma once

#include <sys/socket.h>

namespace valora::media {

// False for loopback, private, link-local, shared, multicast and reserved addresses (IANA's
// special-purpose registries), for IPv6 addresses that embed one, and for other address families.
bool is_public(const sockaddr& address);

}  // namespace valora::media
