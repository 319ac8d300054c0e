#include "streams/skill_turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace valora::streams {
namespace {

using ::testing::ElementsAre;

// A frame of one brightness.
LookPtr look(float value, double time = 0, int64_t run = 1, int width = 64) {
  return std::make_shared<const Look>(
      Look{.grid = {2, 1, {0, value}}, .width = width, .height = 36, .run = run, .time = time});
}

std::vector<StandingSkill> skills(std::initializer_list<double> periods) {
  std::vector<StandingSkill> made;
  for (const double period : periods) made.push_back({.every = period});
  return made;
}

TEST(SkillTurns, ASkillIsDueAgainAfterItsPeriod) {
  SkillTurns turns(skills({0, 10}), {});
  EXPECT_THAT(turns.due(100, 1), ElementsAre(0, 1));
  EXPECT_THAT(turns.due(109, 1), ElementsAre(0));
  EXPECT_THAT(turns.due(109.99, 1), ElementsAre(0, 1));
  EXPECT_THAT(turns.due(119, 1), ElementsAre(0));
  EXPECT_THAT(turns.due(120, 1), ElementsAre(0, 1));
  EXPECT_THAT(turns.due(119.999, 1), ElementsAre(0)) << "frames that two threads pushed";
  EXPECT_THAT(turns.due(121, 2), ElementsAre(0)) << "a new connection";
  EXPECT_THAT(turns.due(3, 3), ElementsAre(0, 1)) << "a file begins anew";
  EXPECT_THAT(turns.due(4, 3), ElementsAre(0));
}

TEST(SkillTurns, OnlyAFrameLikeTheLastAskedOneIsStill) {
  SkillTurns turns(skills({0}), StillRule{.threshold = 8, .at_most = 60});
  EXPECT_FALSE(turns.is_still(0, look(100))) << "the first frame";
  turns.asked(0, look(100), false);
  EXPECT_TRUE(turns.is_still(0, look(100)));
  EXPECT_TRUE(turns.is_still(0, look(108)));
  EXPECT_FALSE(turns.is_still(0, look(108.5F)));
  EXPECT_FALSE(turns.is_still(0, nullptr)) << "a frame that cannot be read";
  EXPECT_FALSE(turns.is_still(0, look(100, 0, 2))) << "after a new connection";
  EXPECT_FALSE(turns.is_still(0, look(100, 0, 1, 65))) << "another size";
  // Slow changes add up: frames are compared with the one that was asked about.
  turns.asked(0, look(108.5F), false);
  EXPECT_FALSE(turns.is_still(0, look(100)));
  EXPECT_TRUE(turns.is_still(0, look(116)));
}

TEST(SkillTurns, AnAnswerStandsForALimitedTime) {
  SkillTurns turns(skills({0}), StillRule{.threshold = 8, .at_most = 60});
  turns.asked(0, look(100, 1000), false);
  EXPECT_TRUE(turns.is_still(0, look(100, 1059.9)));
  EXPECT_FALSE(turns.is_still(0, look(100, 1060)));
  turns.asked(0, look(100, 1060), false);
  EXPECT_TRUE(turns.is_still(0, look(100, 1100)));
}

TEST(SkillTurns, AFailedAnswerDoesNotStand) {
  SkillTurns turns(skills({0}), StillRule{});
  turns.asked(0, look(100), false);
  turns.asked(0, look(200), true);
  EXPECT_FALSE(turns.is_still(0, look(100)));
  EXPECT_FALSE(turns.is_still(0, look(200)));
}

// A skill that is asked less often has seen less: each compares with its own last frame.
TEST(SkillTurns, ASkillThatIsDueLaterIsAskedAboutTheFrameItWouldHaveHad) {
  SkillTurns turns(skills({0, 10}), StillRule{});
  ASSERT_THAT(turns.due(0, 1), ElementsAre(0, 1));
  for (const size_t skill : {0, 1}) turns.asked(skill, look(100), false);
  ASSERT_THAT(turns.due(5, 1), ElementsAre(0));
  EXPECT_FALSE(turns.is_still(0, look(200)));
  turns.asked(0, look(200), false);
  ASSERT_THAT(turns.due(10, 1), ElementsAre(0, 1));
  EXPECT_TRUE(turns.is_still(0, look(200)));
  EXPECT_FALSE(turns.is_still(1, look(200)));
}

TEST(SkillTurns, WithoutARuleNothingIsStill) {
  SkillTurns turns(skills({0}), {});
  turns.asked(0, look(100), false);
  EXPECT_FALSE(turns.is_still(0, look(100)));
}

}  // namespace
}  // namespace valora::streams
