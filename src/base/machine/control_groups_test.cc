#include "base/machine/control_groups.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/testing/temp_dir.h"

namespace valora {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// A folder with the /proc and /sys of a process in control groups.
class ControlGroups : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_.file(path)).parent_path());
    root_.write(path, text);
  }
  void write_v2(const std::string& group, const std::string& top = "/") {
    write("proc/self/cgroup", "0::" + group + "\n");
    write("proc/self/mountinfo",
          "22 1 8:1 / / rw - ext4 /dev/sda rw\n31 23 0:28 " + top +
              " /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  void write_v1(const std::string& group, const std::string& top = "/") {
    write("proc/self/cgroup",
          "5:cpu,cpuacct:" + group + "\n4:memory:" + group + "\n3:cpuset:/elsewhere\n0::/other\n");
    write("proc/self/mountinfo",
          "40 31 0:33 " + top + " /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
              "41 31 0:34 " + top + " /mnt/groups/memory rw shared:1 - cgroup cgroup rw,memory\n" +
              "42 31 0:35 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n");
  }
  const std::string& root() const { return root_.path(); }

 private:
  testing::TempDir root_;
};

TEST_F(ControlGroups, NothingIsLimitedWithoutFiles) {
  EXPECT_FALSE(cpu_quota(root()));
  EXPECT_FALSE(memory_limit(root()));
}

TEST_F(ControlGroups, QuotaOfTheRootIsRead) {
  write_v2("/");
  write("sys/fs/cgroup/cpu.max", "150000 100000\n");
  const auto quota = cpu_quota(root());
  ASSERT_TRUE(quota);
  EXPECT_EQ(quota->cpus, 1.5);
  EXPECT_EQ(quota->file, "/sys/fs/cgroup/cpu.max");
}

TEST_F(ControlGroups, LowestQuotaOfAllGroupsAboveHolds) {
  write_v2("/system.slice/x.service/inner");
  write("sys/fs/cgroup/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/system.slice/cpu.max", "300000 100000\n");
  write("sys/fs/cgroup/system.slice/x.service/cpu.max", "50000 25000\n");
  write("sys/fs/cgroup/system.slice/x.service/inner/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/system.slice/y.service/cpu.max", "100 100000\n");  // another group
  const auto quota = cpu_quota(root());
  ASSERT_TRUE(quota);
  EXPECT_EQ(quota->cpus, 2);
  EXPECT_EQ(quota->file, "/sys/fs/cgroup/system.slice/x.service/cpu.max");
}

TEST_F(ControlGroups, OlderLayoutIsRead) {
  write_v1("/docker/a1");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_FALSE(cpu_quota(root()));
  write("sys/fs/cgroup/cpu,cpuacct/docker/a1/cpu.cfs_quota_us", "100000\n");
  write("sys/fs/cgroup/cpu,cpuacct/docker/a1/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota(root())->cpus, 1);
  write("mnt/groups/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_FALSE(memory_limit(root()));
  write("mnt/groups/memory/docker/memory.limit_in_bytes", std::to_string(300 * kMiB));
  write("mnt/groups/memory/docker/memory.usage_in_bytes", std::to_string(150 * kMiB));
  write("mnt/groups/memory/docker/memory.stat",
        "active_file 1\ntotal_active_file " + std::to_string(20 * kMiB) + "\ntotal_inactive_file " +
            std::to_string(30 * kMiB) + "\ntotal_rss 5\n");
  const auto limit = memory_limit(root());
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->bytes, 300 * kMiB);
  EXPECT_EQ(limit->left, 200 * kMiB);
  EXPECT_EQ(limit->file, "/mnt/groups/memory/docker/memory.limit_in_bytes");
}

TEST_F(ControlGroups, MountOfAPartShowsTheGroupsBelowIt) {
  // A container without a namespace of groups: the files of /docker/a1 are at the mount point.
  write_v1("/docker/a1/job", "/docker/a1");
  write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "250000\n");
  write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota(root())->cpus, 2.5);
  // A process that was moved out of its namespace: what the mount point has is all that is known.
  write_v2("/../../elsewhere");
  write("sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(cpu_quota(root())->cpus, 2);
}

TEST_F(ControlGroups, UsualMountPointsAreTriedWithoutAList) {
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "200000\n");
  EXPECT_EQ(cpu_quota(root())->cpus, 0.5);
}

TEST_F(ControlGroups, MemoryOfTheGroupThatLeavesLeastCounts) {
  write_v2("/a/b");
  write("sys/fs/cgroup/a/memory.max", std::to_string(500 * kMiB));
  write("sys/fs/cgroup/a/memory.current", std::to_string(450 * kMiB));
  write("sys/fs/cgroup/a/b/memory.max", std::to_string(100 * kMiB));
  write("sys/fs/cgroup/a/b/memory.current", std::to_string(20 * kMiB));
  EXPECT_EQ(memory_limit(root())->left, 50 * kMiB) << "neighbours have taken most of it";
  write("sys/fs/cgroup/a/b/memory.high", std::to_string(30 * kMiB));
  EXPECT_EQ(memory_limit(root())->left, 10 * kMiB);
  write("sys/fs/cgroup/a/b/memory.current", std::to_string(40 * kMiB));
  EXPECT_EQ(memory_limit(root())->left, 0);
  write("sys/fs/cgroup/a/b/memory.max", "max\n");
  write("sys/fs/cgroup/a/b/memory.high", "max\n");
  EXPECT_EQ(memory_limit(root())->bytes, 500 * kMiB);
}

TEST_F(ControlGroups, EscapedNamesOfMountsAreRead) {
  write_v2("/a\\x2db/c", "/a\\134x2db");
  write("sys/fs/cgroup/c/cpu.max", "100000 100000\n");
  EXPECT_EQ(cpu_quota(root())->cpus, 1);
}

}  // namespace
}  // namespace valora
