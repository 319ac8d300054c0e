#include "base/threads/rank_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "base/threads/host_communicator.h"

namespace valora {
namespace {

using enum Communicator::Reduction;

using ::testing::ElementsAre;
using namespace std::chrono_literals;

std::string reason(RankThreads& threads, const RankThreads::Body& body) {
  try {
    threads.run(body);
  } catch (const RankLostError& e) {
    return e.what();
  }
  return {};
}

TEST(RankThreads, EveryRankRunsEachBodyOnce) {
  HostCommunicator communicator(3, {});
  RankThreads threads(communicator);
  std::array<int, 3> runs{};
  for (int i = 0; i < 100; ++i) threads.run([&](int rank) { ++runs[rank]; });
  EXPECT_THAT(runs, ElementsAre(100, 100, 100));
}

TEST(RankThreads, Rank0RunsOnTheCallingThread) {
  HostCommunicator communicator(2, {});
  RankThreads threads(communicator);
  std::array<std::thread::id, 2> ids;
  threads.run([&](int rank) { ids[rank] = std::this_thread::get_id(); });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_NE(ids[1], ids[0]);
}

TEST(RankThreads, BodiesUseCollectives) {
  HostCommunicator communicator(4, {});
  RankThreads threads(communicator);
  std::array<std::vector<float>, 4> values;
  threads.run([&](int rank) {
    values[rank] = {1, static_cast<float>(rank)};
    communicator.all_reduce(rank, values[rank], serial_for, kSum);
  });
  EXPECT_THAT(values, ::testing::Each(ElementsAre(4, 6)));
}

TEST(RankThreads, ThrowingRankFailsAllLaterRuns) {
  for (int broken = 0; broken < 3; ++broken) {
    HostCommunicator communicator(3, {.limit = 1h});
    RankThreads threads(communicator);
    const std::string expected = "rank " + std::to_string(broken) + " of 3 failed: no luck";
    EXPECT_EQ(reason(threads,
                     [&](int rank) {
                       std::vector<float> values(5);
                       if (rank == broken) throw std::runtime_error("no luck\nstack");
                       communicator.all_reduce(rank, values, serial_for, kSum);
                     }),
              expected);
    bool ran = false;
    EXPECT_EQ(reason(threads, [&](int) { ran = true; }), expected);
    EXPECT_FALSE(ran);
  }
}

TEST(RankThreadsDeathTest, HangingRankEndsProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        HostCommunicator communicator(2, {.limit = 50ms});
        RankThreads threads(communicator, 50ms);
        threads.run([&](int rank) {
          std::vector<float> values(5);
          if (rank == 1) std::this_thread::sleep_for(1h);
          communicator.all_reduce(rank, values, serial_for, kSum);
        });
      },
      ::testing::ExitedWithCode(1), "");
}

}  // namespace
}  // namespace valora
