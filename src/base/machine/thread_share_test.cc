#include "base/machine/thread_share.h"

#include <gtest/gtest.h>

namespace valora {
namespace {

// One second in which others used `others` CPU seconds and our threads ran for `own` seconds.
CoreLoad second(double others, double own, double waited) {
  return {.all = others + own, .own = own, .waited = waited};
}

TEST(ThreadShare, QuietMachineKeepsAllThreads) {
  ThreadShare share(4, 4);
  share.update(second(0, 3.9, 0), 1);
  EXPECT_EQ(share.threads(), 4);
}

TEST(ThreadShare, EachBusyCpuCostsOneThread) {
  ThreadShare two(2, 2), many(16, 16);
  two.update(second(0.5, 1.5, 1), 1);  // one program shares a CPU with a thread
  EXPECT_EQ(two.threads(), 1);
  many.update(second(3, 13, 4), 1);
  EXPECT_EQ(many.threads(), 13);
}

TEST(ThreadShare, KeepsOneThreadHoweverBusyOthersAre) {
  ThreadShare share(2, 2);
  share.update(second(1.9, 0.1, 3), 1);
  EXPECT_EQ(share.threads(), 1);
}

TEST(ThreadShare, OtherProgramsUseFreeCpusFirst) {
  ThreadShare share(4, 16);
  share.update(second(8, 4, 1), 1);
  EXPECT_EQ(share.threads(), 4);
}

TEST(ThreadShare, ProgramsWithoutContentionCostNoThread) {
  ThreadShare share(2, 2);
  share.update(second(0.9, 1, 0.05), 1);
  EXPECT_EQ(share.threads(), 2);
}

TEST(ThreadShare, ThreadsReturnWhenOtherLoadEnds) {
  ThreadShare share(2, 2);
  share.update(second(1, 1, 1), 1);
  ASSERT_EQ(share.threads(), 1);
  share.update(second(1, 1, 0), 1);  // with one thread, nothing waits
  EXPECT_EQ(share.threads(), 1);
  share.update(second(0.2, 1, 0), 1);
  EXPECT_NEAR(share.others(), 0.2, 1e-9);
  EXPECT_EQ(share.threads(), 2) << "a fifth of a CPU costs no thread";
  share.update(second(0.5, 1, 0), 1);
  EXPECT_EQ(share.threads(), 1) << "the program is still there";
  share.update(second(0.1, 1, 0), 1);
  EXPECT_EQ(share.threads(), 2);
  share.update(second(0.5, 1.5, 0), 1);
  EXPECT_EQ(share.threads(), 2) << "another program, for which nobody waits";
}

TEST(ThreadShare, LoadIsPerSecondOfWallTime) {
  ThreadShare share(2, 2);
  share.update(second(0.5, 1, 1), 10);  // 0.05 CPUs
  EXPECT_EQ(share.threads(), 2);
}

}  // namespace
}  // namespace valora
