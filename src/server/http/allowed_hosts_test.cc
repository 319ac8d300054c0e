#include "server/http/allowed_hosts.h"

#include <gtest/gtest.h>

namespace valora::server {
namespace {

TEST(AllowedHosts, MatchesNamesAddressesAndPorts) {
  EXPECT_TRUE(host_allowed("anything:1", {}));
  EXPECT_TRUE(host_allowed("Example.org.:8000", {"a", "example.ORG"}));
  EXPECT_TRUE(host_allowed("example.org:8000", {"example.org:8000"}));
  EXPECT_FALSE(host_allowed("example.org:8001", {"example.org:8000"}));
  EXPECT_FALSE(host_allowed("example.org", {"example.org:8000"}));
  for (const char* entry : {"::1", "[::1]"}) EXPECT_TRUE(host_allowed("[::1]:8000", {entry}));
  EXPECT_TRUE(host_allowed("[::1]", {"[::1]"}));
  EXPECT_FALSE(host_allowed("[::2]:8000", {"::1"}));
  EXPECT_TRUE(host_allowed("a.b.example.org", {"*.example.org"}));
  for (const char* host :
       {"example.org", ".example.org", "aexample.org", "example.org.evil", "", ":"})
    EXPECT_FALSE(host_allowed(host, {"*.example.org"})) << host;
  EXPECT_FALSE(host_allowed("", {"localhost"}));
}

}  // namespace
}  // namespace valora::server
