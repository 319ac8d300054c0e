#include "base/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/testing/temp_dir.h"

namespace valora {
namespace {

namespace fs = std::filesystem;

int threads() { return static_cast<int>(std::thread::hardware_concurrency()); }

// Writes a folder of CPUs in which `per_core` neighbours are threads of one core.
void write_cpus(const std::string& folder, int per_core) {
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    const fs::path topology = fs::path(folder) / ("cpu" + std::to_string(cpu)) / "topology";
    fs::create_directories(topology);
    const int first = cpu / per_core * per_core;
    std::ofstream(topology / "thread_siblings_list")
        << first << "-" << first + per_core - 1 << "\n";
  }
}

std::string quota_file(const testing::TempDir& folder, const std::string& text) {
  const std::string path = folder.path() + "/cpu.max";
  std::ofstream(path) << text;
  return path;
}

TEST(Cores, CountsSiblingThreadsOnce) {
  testing::TempDir cpus;
  write_cpus(cpus.path(), CPU_SETSIZE);
  EXPECT_EQ(usable_cores({cpus.path(), ""}), 1);
}

TEST(Cores, MissingTopologyCountsThreadsAsCores) { EXPECT_EQ(usable_cores({"", ""}), threads()); }

TEST(Cores, QuotaRoundsUpAndLimits) {
  testing::TempDir folder;
  EXPECT_EQ(usable_cores({"", quota_file(folder, "50000 100000")}), 1);
  EXPECT_EQ(usable_cores({"", quota_file(folder, "150000 100000")}), std::min(2, threads()));
  EXPECT_EQ(usable_cores({"", quota_file(folder, "max 100000")}), threads());
  EXPECT_EQ(usable_cores({"", quota_file(folder, "not a quota")}), threads());
}

TEST(Cores, ThisMachineHasCores) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_LE(usable_cores(), threads());
}

}  // namespace
}  // namespace valora
