#include "lab/ops/timing.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace valora::bench {
namespace {

TEST(Race, RunnersAlternateUntilTheRoundsEnd) {
  std::string turns;
  const auto slow = [&](char name) {
    return [&turns, name] {
      turns += name;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    };
  };
  const auto timings = race({{"a", slow('a')}, {"b", slow('b')}},
                            {.seconds = 0, .min_rounds = 3, .max_rounds = 9, .min_sample = 1e-6});
  ASSERT_EQ(turns.size(), 6u + 3 * 4) << turns;
  EXPECT_EQ(turns.substr(0, 6), "aaabbb") << "each runs three times before, unmeasured";
  for (size_t round = 6; round < turns.size(); round += 4) {  // plus one unmeasured run per sample
    const std::string turn = turns.substr(round, 4);
    EXPECT_TRUE(turn == "aabb" || turn == "bbaa") << turns;
  }
  ASSERT_EQ(timings.size(), 2u);
  EXPECT_EQ(timings[1].name, "b");
  EXPECT_EQ(timings[1].seconds.count, 3u);
  EXPECT_GE(timings[0].seconds.p50, 100e-6);
}

TEST(Race, OrderChangesEachRound) {
  std::string turns;
  std::vector<Runner> runners;
  for (const char name : {'a', 'b', 'c'})
    runners.push_back({std::string(1, name), [&turns, name] { turns += name; }});
  race(runners, {.seconds = 0, .min_rounds = 30, .max_rounds = 30, .min_sample = 0});
  for (const char name : {'a', 'b', 'c'}) {
    int first = 0;
    for (size_t round = 9; round < turns.size(); round += 6) first += turns[round] == name;
    EXPECT_GE(first, 4) << name << " in " << turns;
  }
}

TEST(Race, EndsAfterMaxRounds) {
  int runs = 0;
  const auto timings = race({{"a", [&] { ++runs; }}},
                            {.seconds = 3600, .min_rounds = 1, .max_rounds = 4, .min_sample = 0});
  EXPECT_EQ(timings[0].seconds.count, 4u);
  EXPECT_EQ(runs, 3 + 4 * 2);
}

TEST(Race, RepeatsShortRunsWithinASample) {
  int runs = 0;
  race({{"a", [&] { ++runs; }}}, {.seconds = 0, .min_rounds = 1, .max_rounds = 1, .min_sample = 1});
  EXPECT_EQ(runs, 3 + 1 + 10000);  // the maximum number of repetitions
}

TEST(Fastest, IsTheMinimumOfItsRuns) {
  int run = 0;
  const double seconds = fastest(
      [&] { std::this_thread::sleep_for(std::chrono::milliseconds(++run == 2 ? 1 : 30)); }, 3);
  EXPECT_EQ(run, 3);
  EXPECT_GE(seconds, 1e-3);
  EXPECT_LT(seconds, 30e-3);
}

}  // namespace
}  // namespace valora::bench
