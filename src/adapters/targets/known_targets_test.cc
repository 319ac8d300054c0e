#include "adapters/targets/known_targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace valora::adapters {
namespace {

using ::testing::ElementsAre;

struct Counted {
  KnownTargets known;
  int calls = 0;
  Result<KnownTargets::Modules> of(const std::string& key, const std::vector<int>& modules) {
    return known.of(digest_of(key), [&]() -> Result<std::vector<int>> {
      ++calls;
      return modules;
    });
  }
};

TEST(KnownTargets, MatchesEachConfigurationOnce) {
  Counted targets;
  EXPECT_THAT(**targets.of("a", {1, 2}), ElementsAre(1, 2));
  EXPECT_THAT(**targets.of("b", {3}), ElementsAre(3));
  EXPECT_THAT(**targets.of("a", {9}), ElementsAre(1, 2));
  EXPECT_EQ(targets.calls, 2);
}

TEST(KnownTargets, ErrorsAreNotKept) {
  Counted targets;
  const auto failed = targets.known.of(
      digest_of("a"), []() -> Result<std::vector<int>> { return unprocessable("too slow"); });
  EXPECT_EQ(failed.error().message, "too slow");
  EXPECT_THAT(**targets.of("a", {1}), ElementsAre(1));
}

TEST(KnownTargets, KeepsABoundedNumber) {
  Counted targets;
  const auto first = *targets.of("0", {0});
  for (size_t i = 1; i <= KnownTargets::kMost; ++i) (void)targets.of(std::to_string(i), {});
  EXPECT_THAT(*first, ElementsAre(0)) << "users keep what they got";
  EXPECT_THAT(**targets.of("0", {7}), ElementsAre(7)) << "it was dropped";
}

}  // namespace
}  // namespace valora::adapters
