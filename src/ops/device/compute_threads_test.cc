#include "ops/device/compute_threads.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>

#include "base/testing/temp_dir.h"

namespace valora::ops {
namespace {

// A machine where programs have used each CPU for some seconds, and where this process's thread has
// waited.
class FakeMachine {
 public:
  FakeMachine() {
    std::filesystem::create_directories(folder_.path() + "/task/1");
    set(0, 0);
  }
  void set(double cpu_seconds, double waited) {
    const auto ticks =
        static_cast<int64_t>(cpu_seconds * static_cast<double>(::sysconf(_SC_CLK_TCK)));
    std::string text;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) text += fmt::format("cpu{} {} 0 0 0\n", cpu, ticks);
    folder_.write("stat", text);
    folder_.write("task/1/schedstat", fmt::format("0 {} 0\n", static_cast<int64_t>(waited * 1e9)));
  }
  CoreLoadFiles files() const { return {folder_.path() + "/stat", folder_.path() + "/task"}; }

 private:
  testing::TempDir folder_;
};

class ComputeThreadsTest : public ::testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(2); }
  void TearDown() override { at::set_num_threads(before_); }
  void pass(double seconds) { clock_.advance(from_seconds(seconds)); }

  FakeMachine machine_;
  SimulatedClock clock_;

 private:
  const int before_ = at::get_num_threads();
};

TEST_F(ComputeThreadsTest, DropsThreadsWhileOthersAreBusy) {
  ComputeThreads threads(clock_, machine_.files());
  machine_.set(100, 50);  // every CPU was busy for 100 s
  threads.adjust();
  EXPECT_EQ(at::get_num_threads(), 2) << "within the period nothing is read";
  pass(100);
  threads.adjust();
  EXPECT_EQ(at::get_num_threads(), 1);
  pass(100);
  threads.adjust();
  EXPECT_EQ(at::get_num_threads(), 2);
}

TEST_F(ComputeThreadsTest, DestructorRestoresThreadCount) {
  {
    ComputeThreads threads(clock_, machine_.files());
    machine_.set(100, 50);
    pass(100);
    threads.adjust();
    ASSERT_EQ(at::get_num_threads(), 1);
  }
  EXPECT_EQ(at::get_num_threads(), 2);
}

TEST_F(ComputeThreadsTest, KeepsThreadCountWithoutReading) {
  ComputeThreads threads(clock_, {"/nowhere", "/nowhere"});
  pass(100);
  threads.adjust();
  EXPECT_EQ(at::get_num_threads(), 2);
}

}  // namespace
}  // namespace valora::ops
