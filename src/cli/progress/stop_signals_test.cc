#include "cli/progress/stop_signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace valora::cli {
namespace {

void wait_for(const std::stop_token& stop) {
  for (int i = 0; i < 1000 && !stop.stop_requested(); ++i) ::usleep(10'000);
}

TEST(StopSignals, FirstSignalRequestsAStop) {
  for (const auto& [signal, status] : {std::pair{SIGTERM, 143}, {SIGINT, 130}}) {
    const StopSignals signals;
    EXPECT_FALSE(signals.token().stop_requested());
    EXPECT_EQ(signals.exit_status(), 0);
    ::kill(::getpid(), signal);
    wait_for(signals.token());
    EXPECT_TRUE(signals.token().stop_requested());
    EXPECT_EQ(signals.exit_status(), status);
  }
}

TEST(StopSignalsDeathTest, SecondSignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        const StopSignals signals;
        ::kill(::getpid(), SIGTERM);
        wait_for(signals.token());
        ::kill(::getpid(), SIGTERM);
        ::sleep(20);
      },
      ::testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace valora::cli
