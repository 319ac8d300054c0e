// Pins that change at run time. The fake model's adapters take two blocks each; pinned ones may
// take four of 32 blocks.
#include <gmock/gmock.h>

#include "serving/testing/fake_engine_fixture.h"

namespace valora::serving {
namespace {

using namespace testing;
using ::testing::HasSubstr;

class PinsTest : public FakeEngineTest {
 protected:
  void SetUp() override {
    options_.memory.pool_bytes = 32 * kFakeBlockBytes;
    start();
    for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(load(name, name).ok());
  }
  AdapterCard card(const std::string& name) {
    for (AdapterCard& each : engine_->adapters())
      if (each.name == name) return each;
    ADD_FAILURE() << name << " is not loaded";
    return {};
  }
};

TEST_F(PinsTest, PinsBeyondShareAreRefusedWithNumbers) {
  ASSERT_TRUE(pin("a").ok());
  ASSERT_TRUE(pin("b").ok());
  EXPECT_TRUE(pin("a").ok());  // already pinned
  const Status third = pin("c");
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(third.error().message,
              HasSubstr("pinned adapters would take 96 bytes, over their limit of 64 bytes"));
  EXPECT_TRUE(card("a").pinned && card("b").pinned);
  EXPECT_FALSE(card("c").pinned);
  ASSERT_TRUE(pin("a", false).ok());
  EXPECT_FALSE(card("a").pinned);
  EXPECT_TRUE(pin("c").ok());
  EXPECT_EQ(pin("nobody").error().code, ErrorCode::kNotFound);
}

TEST_F(PinsTest, APinnedAdapterIsLoadedAndStays) {
  // KV fills the pool. What leaves first depends on measured times, so on the machine.
  const auto fill_until_gone = [&](const char* name) {
    for (int i = 0; i < 100 && card(name).place == WeightsPlace::kPool; ++i)
      run(ask(numbered_prompt(400, 7 * i), 4));
    EXPECT_NE(card(name).place, WeightsPlace::kPool);
  };
  ASSERT_TRUE(pin("b").ok());
  wait_until([&] { return card("b").place == WeightsPlace::kPool; });
  for (int i = 0; i < 6; ++i) run(ask(numbered_prompt(400, 50 * i), 4));
  fill_until_gone("a");
  EXPECT_EQ(card("b").place, WeightsPlace::kPool);
  ASSERT_TRUE(pin("b", false).ok());
  fill_until_gone("b");
  EXPECT_EQ(engine_->check(), "");
}

TEST_F(PinsTest, NamesOfTheSameWeightsShareThePin) {
  ASSERT_TRUE(load({.name = "again", .path = "", .same_as = "a", .pinned = true}).ok());
  ASSERT_TRUE(pin("a").ok());
  ASSERT_TRUE(pin("b").ok());
  ASSERT_TRUE(pin("a", false).ok());
  EXPECT_FALSE(pin("c").ok());  // pinned by the other name, too
  ASSERT_TRUE(unload("again").ok());
  EXPECT_TRUE(pin("c").ok());
}

TEST_F(PinsTest, ReplacedAdapterReleasesPin) {
  ASSERT_TRUE(pin("a").ok());
  ASSERT_TRUE(pin("b").ok());
  ASSERT_TRUE(load("a", "a", true).ok());  // same weights, but not pinned
  EXPECT_FALSE(card("a").pinned);
  ASSERT_TRUE(pin("c").ok());
  ASSERT_TRUE(load("b", "other", true).ok());
  EXPECT_TRUE(pin("a").ok());
}

}  // namespace
}  // namespace valora::serving
