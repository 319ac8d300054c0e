#include "serving/adapters/loaded_adapter.h"

#include <gtest/gtest.h>

namespace valora::serving {
namespace {

AppliedAdapter adapter(int number, bool on_visuals, float scale = 1) {
  auto made = std::make_shared<LoadedAdapter>();
  made->digest = DigestBuilder().add(number).finish();
  made->need = {made->digest, number};
  made->has_weights = number > 0;
  made->on_visuals = on_visuals;
  return {std::move(made), scale};
}

Digest identity(std::vector<AppliedAdapter> adapters) { return identity_of(adapters); }
Digest key(std::vector<AppliedAdapter> adapters, const Digest& input) {
  return visual_key(adapters, input);
}

TEST(AppliedAdapters, IdentityCoversAdaptersWithWeights) {
  EXPECT_EQ(identity({}), Digest{});
  EXPECT_EQ(identity({adapter(0, false)}), Digest{}) << "heads only";
  EXPECT_EQ(identity({adapter(1, false)}), identity({adapter(0, false), adapter(1, false)}));
  EXPECT_NE(identity({adapter(1, false)}), identity({adapter(2, false)}));
  EXPECT_NE(identity({adapter(1, false)}), identity({adapter(1, false, 0.5f)}));
}

TEST(AppliedAdapters, EqualContentIsNeededOnce) {
  const std::vector<AppliedAdapter> adapters{adapter(2, false), adapter(0, false),
                                             adapter(2, false, 3), adapter(1, true)};
  const auto needs = needs_of(adapters);
  ASSERT_EQ(needs.size(), 2u);
  EXPECT_EQ(needs[0].blocks, 2);
  EXPECT_EQ(needs[1].blocks, 1);
}

TEST(AppliedAdapters, VisualKeyCoversPixelsAndTowerAdapters) {
  const Digest pixels = DigestBuilder().add(7).finish(), others = DigestBuilder().add(8).finish();
  EXPECT_EQ(key({}, pixels), pixels);
  EXPECT_EQ(key({adapter(1, false), adapter(2, true, 0)}, pixels), pixels);
  EXPECT_EQ(key({adapter(1, false), adapter(2, true)}, pixels), key({adapter(2, true)}, pixels));
  EXPECT_NE(key({adapter(2, true)}, pixels), pixels);
  EXPECT_NE(key({adapter(2, true)}, pixels), key({adapter(2, true)}, others));
  EXPECT_NE(key({adapter(2, true)}, pixels), key({adapter(2, true, 0.5f)}, pixels));
}

TEST(AppliedAdapters, ActivatedAdapterAppliesFromLastInvocation) {
  auto made = std::make_shared<LoadedAdapter>();
  made->invocation = {7, 7};
  const std::vector<AppliedAdapter> uses{{made, 1}};
  const auto from = [&](std::vector<int32_t> prompt) { return acts_from(uses, prompt); };
  EXPECT_EQ(from({1, 7, 7, 2}), 1);
  EXPECT_EQ(from({7, 7, 1, 7, 7}), 3);
  EXPECT_EQ(from({1, 7, 7, 7}), 2) << "places may overlap";
  EXPECT_EQ(from({1, 7, 2, 7}), kNever);
  EXPECT_EQ(from({7}), kNever);
  EXPECT_EQ(acts_from(std::vector<AppliedAdapter>{adapter(1, false)}, std::vector<int32_t>{7, 7}),
            0);
  EXPECT_TRUE(check_uses(uses).ok());
  const std::vector<AppliedAdapter> two{adapter(1, false), {made, 1}};
  EXPECT_FALSE(check_uses(two).ok());
}

}  // namespace
}  // namespace valora::serving
