#include "base/machine/core_load.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "base/testing/temp_dir.h"

namespace valora {
namespace {

// One line per possible CPU: `ticks` of user time, twice that of nice time, three times that of
// system time.
std::string stat_text(long ticks) {
  std::string text = fmt::format("cpu  {} 0 0 9 9 9 9 9 0 0\n", 1000000);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    text +=
        fmt::format("cpu{} {} {} {} 500 600 700 800 900 0 0\n", cpu, ticks, 2 * ticks, 3 * ticks);
  return text + "intr 1 2 3\nctxt 77\n";
}

void write_thread(const testing::TempDir& folder, int thread, const std::string& text) {
  std::filesystem::create_directories(folder.path() + "/task/" + std::to_string(thread));
  folder.write(fmt::format("task/{}/schedstat", thread), text);
}

TEST(CoreLoad, SumsCpuTimesAndThreadWaits) {
  testing::TempDir folder;
  const long second = ::sysconf(_SC_CLK_TCK);
  write_thread(folder, 1, "7000000000 1500000000 12\n");
  write_thread(folder, 2, "9000000000 250000000 3\n");
  const CoreLoadReader reader({folder.write("stat", stat_text(second)), folder.path() + "/task"});
  const auto load = reader.read();
  ASSERT_TRUE(load);
  EXPECT_DOUBLE_EQ(load->all, 6.0 * reader.cpus());
  EXPECT_DOUBLE_EQ(load->waited, 1.75);
}

TEST(CoreLoad, MissingSchedstatCountsAsNoWait) {
  testing::TempDir folder;
  write_thread(folder, 1, "");
  const CoreLoadReader reader({folder.write("stat", stat_text(1)), folder.path() + "/task"});
  ASSERT_TRUE(reader.read());
  EXPECT_EQ(reader.read()->waited, 0);
  const CoreLoadReader without({folder.path() + "/stat", folder.path() + "/none"});
  ASSERT_TRUE(without.read());
  EXPECT_EQ(without.read()->waited, 0);
}

TEST(CoreLoad, NoReadingWithoutCpuLines) {
  testing::TempDir folder;
  for (const std::string text : {"", "cpu 1 2 3 4\n", "cpu0 x\n", "cpu99999 1 2 3\n"})
    EXPECT_FALSE(CoreLoadReader({folder.write("stat", text), ""}).read()) << text;
  EXPECT_FALSE(CoreLoadReader({folder.path() + "/none", ""}).read());
}

TEST(CoreLoad, OwnTimeGrowsWithWork) {
  const CoreLoadReader reader;
  const auto before = reader.read();
  if (!before) GTEST_SKIP() << "this kernel does not say what its CPUs do";
  EXPECT_GE(reader.cpus(), 1);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(60);
  while (std::chrono::steady_clock::now() < end) {
  }
  const auto after = reader.read();
  ASSERT_TRUE(after);
  EXPECT_GT(after->own, before->own);
  EXPECT_GE(after->all, before->all);
}

}  // namespace
}  // namespace valora
