#include "base/machine/cores.h"

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
    const fs::path topology =
        fs::path(folder) / "sys/devices/system/cpu" / ("cpu" + std::to_string(cpu)) / "topology";
    fs::create_directories(topology);
    const int first = cpu / per_core * per_core;
    std::ofstream(topology / "thread_siblings_list")
        << first << "-" << first + per_core - 1 << "\n";
  }
}

void write_quota(const testing::TempDir& root, const std::string& text) {
  fs::create_directories(root.file("sys/fs/cgroup"));
  root.write("sys/fs/cgroup/cpu.max", text);
}

TEST(Cores, CountsSiblingThreadsOnce) {
  testing::TempDir root;
  write_cpus(root.path(), CPU_SETSIZE);
  EXPECT_EQ(usable_cores(root.path()), 1);
}

TEST(Cores, MissingTopologyCountsThreadsAsCores) {
  testing::TempDir root;
  EXPECT_EQ(usable_cores(root.path()), threads());
}

TEST(Cores, QuotaRoundsDownAndLimits) {
  testing::TempDir root;
  const auto cores_with = [&](const std::string& quota) {
    write_quota(root, quota);
    return usable_cores(root.path());
  };
  EXPECT_EQ(cores_with("50000 100000"), 1);
  EXPECT_EQ(cores_with("150000 100000"), 1);
  EXPECT_EQ(cores_with("299000 100000"), std::min(2, threads()));
  EXPECT_EQ(cores_with("max 100000"), threads());
  EXPECT_EQ(cores_with("not a quota"), threads());
}

TEST(Cores, ThisMachineHasCores) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_LE(usable_cores(), threads());
}

}  // namespace
}  // namespace valora
