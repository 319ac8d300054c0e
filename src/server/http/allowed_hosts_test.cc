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
  EXPECT_TRUE(host_allowed("[0:0:0:0:0:0:0:1]", {"::1"})) << "the same address";
  EXPECT_FALSE(host_allowed("::1", {"::1"})) << "without brackets";
  EXPECT_FALSE(host_allowed("[localhost]", {"localhost"}));
  EXPECT_FALSE(host_allowed("[localhost]:8000", {"localhost"}));
  EXPECT_TRUE(host_allowed("localhost:", {"localhost"}));
}

TEST(AllowedHosts, HostsHaveTheirGrammar) {
  for (const char* host : {"", "localhost", "a_b:80", "example.org.:8000", "127.0.0.1", "[::1]",
                           "[::ffff:1.2.3.4]:1", "[fe80::1]:65535", "localhost:", "*"})
    EXPECT_TRUE(is_host(host)) << host;
  for (const char* host : {":",
                           ":80",
                           "[",
                           "[]",
                           "]",
                           "[::1",
                           "::1]",
                           "::1",
                           "[::1]8000",
                           "[::1]x",
                           "[::1]]",
                           "[[::1]]",
                           "[localhost]",
                           "[localhost]:80",
                           "[127.0.0.1]",
                           "[v1.a]",
                           "[fe80::1%25eth0]",
                           "a:b",
                           "a:1:2",
                           "a:65536",
                           "a:+1",
                           "a:-1",
                           "a: 1",
                           "user@host",
                           "a b",
                           "a/b",
                           "a\\b",
                           "h\xc3\xa9"})
    EXPECT_FALSE(is_host(host)) << host;
  for (const char* entry : {"::1", "[::1]", "[::1]:8000", "*.example.org", "localhost:1"})
    EXPECT_TRUE(is_host_entry(entry)) << entry;
  for (const char* entry : {"", "[localhost]", "http://localhost", "a:b"})
    EXPECT_FALSE(is_host_entry(entry)) << entry;
}

}  // namespace
}  // namespace valora::server
