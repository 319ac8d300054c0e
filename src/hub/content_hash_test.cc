#include "hub/content_hash.h"

#include <gtest/gtest.h>

namespace valora::hub {
namespace {

// printf hello | git hash-object --stdin; printf hello | sha256sum
constexpr char kGit[] = "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0";
constexpr char kSha256[] = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

TEST(ContentHash, BothHashesMatchTheirContent) {
  for (const char* digest : {kGit, kSha256}) {
    ContentHash hash(digest, 5);
    hash.add("hel");
    hash.add("lo");
    EXPECT_TRUE(hash.matches()) << digest;
    ContentHash other(digest, 5);
    other.add("hallo");
    EXPECT_FALSE(other.matches()) << digest;
  }
}

TEST(ContentHash, RestartForgetsWhatWasAdded) {
  for (const char* digest : {kGit, kSha256}) {
    ContentHash hash(digest, 5);
    hash.add("xyz");
    hash.restart();
    hash.add("hello");
    EXPECT_TRUE(hash.matches()) << digest;
  }
}

}  // namespace
}  // namespace valora::hub
