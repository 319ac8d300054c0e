#include "media/fetch/public_address.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include <netinet/in.h>

namespace valora::media {
namespace {

using Ipv6 = std::array<uint8_t, 16>;

struct Ipv4Range {
  uint32_t first;
  int bits;
};
constexpr uint32_t ipv4(uint32_t a, uint32_t b, uint32_t c) { return a << 24 | b << 16 | c << 8; }
constexpr std::array kSpecial4 = {
    Ipv4Range{ipv4(0, 0, 0), 8},       Ipv4Range{ipv4(10, 0, 0), 8},
    Ipv4Range{ipv4(100, 64, 0), 10},   Ipv4Range{ipv4(127, 0, 0), 8},
    Ipv4Range{ipv4(169, 254, 0), 16},  Ipv4Range{ipv4(172, 16, 0), 12},
    Ipv4Range{ipv4(192, 0, 0), 24},    Ipv4Range{ipv4(192, 0, 2), 24},
    Ipv4Range{ipv4(192, 168, 0), 16},  Ipv4Range{ipv4(198, 18, 0), 15},
    Ipv4Range{ipv4(198, 51, 100), 24}, Ipv4Range{ipv4(203, 0, 113), 24},
    Ipv4Range{ipv4(224, 0, 0), 3},
};

bool is_public4(uint32_t address) {
  return std::ranges::none_of(kSpecial4, [&](const Ipv4Range& range) {
    return (address ^ range.first) >> (32 - range.bits) == 0;
  });
}

uint32_t ipv4_at(const Ipv6& bytes, size_t at) {
  return uint32_t{bytes[at]} << 24 | uint32_t{bytes[at + 1]} << 16 | uint32_t{bytes[at + 2]} << 8 |
         bytes[at + 3];
}

bool begins(const Ipv6& bytes, std::initializer_list<uint8_t> prefix) {
  return std::equal(prefix.begin(), prefix.end(), bytes.begin());
}

bool is_public6(const Ipv6& bytes) {
  if (begins(bytes, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF}))  // IPv4-mapped
    return is_public4(ipv4_at(bytes, 12));
  if (begins(bytes, {0x00, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0}))  // NAT64
    return is_public4(ipv4_at(bytes, 12));
  if (begins(bytes, {0x20, 0x02})) return is_public4(ipv4_at(bytes, 2));  // 6to4
  if (begins(bytes, {0x20, 0x01, 0x0D, 0xB8})) return false;              // documentation
  if (begins(bytes, {0x20, 0x01, 0x00})) return false;                    // Teredo and others
  return (bytes[0] & 0xE0) == 0x20;  // global unicast, the only part in use
}

}  // namespace

bool is_public(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &address, sizeof in);
    return is_public4(ntohl(in.sin_addr.s_addr));
  }
  if (address.sa_family != AF_INET6) return false;
  sockaddr_in6 in{};
  std::memcpy(&in, &address, sizeof in);
  Ipv6 bytes{};
  std::memcpy(bytes.data(), &in.sin6_addr, bytes.size());
  return is_public6(bytes);
}

}  // namespace valora::media
