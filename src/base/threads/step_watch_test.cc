#include "base/threads/step_watch.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/threads/host_communicator.h"

namespace valora {
namespace {

using namespace std::chrono_literals;

TEST(StepWatch, StepsWithinLimitDoNotFail) {
  HostCommunicator communicator(2, {});
  StepWatch watch(communicator, {.limit = 200ms});
  for (int i = 0; i < 8; ++i) {
    const StepWatch::Step step(&watch);
    std::this_thread::sleep_for(50ms);
  }
  std::this_thread::sleep_for(300ms);  // idle
  EXPECT_FALSE(communicator.failure());
}

TEST(StepWatch, StepBeyondLimitFailsRanks) {
  HostCommunicator communicator(2, {});
  StepWatch watch(communicator, {.limit = 40ms});
  const StepWatch::Step step(&watch);
  while (!communicator.failure()) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(*communicator.failure(),
            "rank 0 of 2 failed: a step did not end on the devices within 1 s");
}

TEST(StepWatchDeathTest, StepHangingAfterFailureEndsProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        HostCommunicator communicator(2, {});
        StepWatch watch(communicator, {.limit = 40ms, .patience = 40ms});
        const StepWatch::Step step(&watch);
        std::this_thread::sleep_for(1h);
      },
      ::testing::ExitedWithCode(1), "");
}

}  // namespace
}  // namespace valora
