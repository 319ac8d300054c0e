#include "media/fetch/http_rules.h"

#include <cstring>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

namespace valora::media {
namespace {

bool is_public_text(const char* text) {
  sockaddr_storage storage{};
  auto* in4 = reinterpret_cast<sockaddr_in*>(&storage);
  auto* in6 = reinterpret_cast<sockaddr_in6*>(&storage);
  if (std::strchr(text, ':')) {
    in6->sin6_family = AF_INET6;
    EXPECT_EQ(inet_pton(AF_INET6, text, &in6->sin6_addr), 1) << text;
  } else {
    in4->sin_family = AF_INET;
    EXPECT_EQ(inet_pton(AF_INET, text, &in4->sin_addr), 1) << text;
  }
  return is_public(reinterpret_cast<const sockaddr&>(storage));
}

TEST(PublicAddress, AcceptsPublicAddresses) {
  for (const char* text :
       {"1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "172.15.255.255",
        "172.32.0.0", "192.167.0.1", "223.255.255.255", "2606:4700::1", "2a00::1",
        "64:ff9b::808:808", "::ffff:8.8.8.8", "2002:808:808::1"})
    EXPECT_TRUE(is_public_text(text)) << text;
}

TEST(PublicAddress, RefusesPrivateAddresses) {
  for (const char* text : {"0.0.0.0",
                           "10.1.2.3",
                           "100.64.0.1",
                           "127.0.0.1",
                           "127.255.255.255",
                           "169.254.169.254",
                           "172.16.0.1",
                           "172.31.255.255",
                           "192.168.1.1",
                           "192.0.2.1",
                           "198.18.0.1",
                           "198.19.255.255",
                           "203.0.113.9",
                           "224.0.0.1",
                           "255.255.255.255",
                           "::",
                           "::1",
                           "fe80::1",
                           "fc00::1",
                           "fd12::1",
                           "ff02::1",
                           "2001:db8::1",
                           "::ffff:127.0.0.1",
                           "64:ff9b::a00:1",
                           "2002:7f00:1::1",
                           "100::1",
                           "::7f00:1"})
    EXPECT_FALSE(is_public_text(text)) << text;
}

TEST(PublicAddress, RefusesOtherAddressFamilies) {
  sockaddr unix_address{};
  unix_address.sa_family = AF_UNIX;
  EXPECT_FALSE(is_public(unix_address));
}

}  // namespace
}  // namespace valora::media
