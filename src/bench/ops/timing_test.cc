#include "bench/ops/timing.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace valora::bench {
namespace {

TEST(Race, TakesTurnsUntilTheRoundsAreOver) {
  std::string turns;
  const auto slow = [&](char name) {
    return [&turns, name] {
      turns += name;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    };
  };
  const auto timings =
      race({{"a", slow('a')}, {"b", slow('b')}}, {.seconds = 0, .min_rounds = 3, .max_rounds = 9, .min_sample = 1e-6});
  EXPECT_EQ(turns, "aaabbb" "ababab");  // each runs three times before, unmeasured
  ASSERT_EQ(timings.size(), 2u);
  EXPECT_EQ(timings[1].name, "b");
  EXPECT_EQ(timings[1].seconds.count, 3u);
  EXPECT_GE(timings[0].seconds.p50, 100e-6);
}

TEST(Race, EndsAfterTheMostRounds) {
  int runs = 0;
  const auto timings =
      race({{"a", [&] { ++runs; }}}, {.seconds = 3600, .min_rounds = 1, .max_rounds = 4, .min_sample = 0});
  EXPECT_EQ(timings[0].seconds.count, 4u);
  EXPECT_EQ(runs, 7);
}

TEST(Race, RepeatsWhatIsShortWithinASample) {
  int runs = 0;
  race({{"a", [&] { ++runs; }}}, {.seconds = 0, .min_rounds = 1, .max_rounds = 1, .min_sample = 1});
  EXPECT_EQ(runs, 3 + 10000);  // as often as may be
}

TEST(Fastest, IsTheLeastOfItsRuns) {
  int run = 0;
  const double seconds =
      fastest([&] { std::this_thread::sleep_for(std::chrono::milliseconds(++run == 2 ? 1 : 30)); }, 3);
  EXPECT_EQ(run, 3);
  EXPECT_GE(seconds, 1e-3);
  EXPECT_LT(seconds, 30e-3);
}

}  // namespace
}  // namespace valora::bench
