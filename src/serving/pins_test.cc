// Pins that change at run time. An adapter of the fake model takes two blocks; of 32 blocks, pinned
// ones may take four.
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

TEST_F(PinsTest, OnesThatWouldTakeTooMuchAreRefusedWithTheNumbers) {
  ASSERT_TRUE(pin("a").ok());
  ASSERT_TRUE(pin("b").ok());
  EXPECT_TRUE(pin("a").ok());  // it is already
  const Status third = pin("c");
  ASSERT_FALSE(third.ok());
  EXPECT_EQ(third.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(third.error().message, HasSubstr("pinned adapters would take 96, but may take 64"));
  EXPECT_TRUE(card("a").pinned && card("b").pinned);
  EXPECT_FALSE(card("c").pinned);
  ASSERT_TRUE(pin("a", false).ok());
  EXPECT_FALSE(card("a").pinned);
  EXPECT_TRUE(pin("c").ok());
  EXPECT_EQ(pin("nobody").error().code, ErrorCode::kNotFound);
}

TEST_F(PinsTest, APinnedAdapterIsLoadedAndStays) {
  ASSERT_TRUE(pin("b").ok());
  wait_until([&] { return card("b").place == WeightsPlace::kPool; });
  for (int i = 0; i < 6; ++i) run(ask(numbered_prompt(400, 50 * i), 4));  // KV fills the pool
  EXPECT_EQ(card("b").place, WeightsPlace::kPool);
  EXPECT_NE(card("a").place, WeightsPlace::kPool);
  ASSERT_TRUE(pin("b", false).ok());
  for (int i = 0; i < 6; ++i) run(ask(numbered_prompt(400, 50 * i + 7), 4));
  EXPECT_NE(card("b").place, WeightsPlace::kPool);
  EXPECT_EQ(engine_->check(), "");
}

TEST_F(PinsTest, NamesOfTheSameWeightsShareThePin) {
  ASSERT_TRUE(load({.name = "again", .path = "", .same_as = "a", .pinned = true}).ok());
  ASSERT_TRUE(pin("a").ok());
  ASSERT_TRUE(pin("b").ok());
  ASSERT_TRUE(pin("a", false).ok());
  EXPECT_FALSE(pin("c").ok());  // the other name keeps it
  ASSERT_TRUE(unload("again").ok());
  EXPECT_TRUE(pin("c").ok());
}

TEST_F(PinsTest, AReplacedAdapterGivesItsPinBack) {
  ASSERT_TRUE(pin("a").ok());
  ASSERT_TRUE(pin("b").ok());
  ASSERT_TRUE(load("a", "a", true).ok());  // the same weights, not pinned
  EXPECT_FALSE(card("a").pinned);
  ASSERT_TRUE(pin("c").ok());
  ASSERT_TRUE(load("b", "other", true).ok());
  EXPECT_TRUE(pin("a").ok());
}

}  // namespace
}  // namespace valora::serving
