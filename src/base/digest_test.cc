#include "base/digest.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace valora {
namespace {

TEST(DigestTest, EmptyInputHasThePublishedXxh3Value) {
  EXPECT_EQ(digest_of(std::string_view{}).hex(), "99aa06d3014798d86001c324468d497f");
}

TEST(DigestTest, EqualPiecesHaveEqualDigest) {
  EXPECT_EQ(DigestBuilder().add("ab").add(3).finish(), DigestBuilder().add("ab").add(3).finish());
}

TEST(DigestTest, DependsOnBoundariesTypesAndValues) {
  std::set<std::string> seen;
  const auto add = [&](const Digest& digest) { EXPECT_TRUE(seen.insert(digest.hex()).second); };
  add(DigestBuilder().finish());
  add(DigestBuilder().add("").finish());
  add(DigestBuilder().add("ab").add("c").finish());
  add(DigestBuilder().add("a").add("bc").finish());
  add(DigestBuilder().add("abc").finish());
  add(DigestBuilder().add(int32_t{1}).finish());
  add(DigestBuilder().add(int64_t{1}).finish());
  add(DigestBuilder().add(1.0f).finish());
  add(DigestBuilder().add(digest_of("abc")).finish());
  const std::vector<int32_t> values{1, 2};
  add(DigestBuilder().add(std::span<const int32_t>(values)).finish());
  add(DigestBuilder().add(1).add(2).finish());
}

}  // namespace
}  // namespace valora
