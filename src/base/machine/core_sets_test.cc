#include "base/machine/core_sets.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>
#include <thread>

#include "base/machine/cores.h"
#include "base/testing/temp_dir.h"

namespace valora {
namespace {

TEST(CoreSets, ParsesKernelCpuLists) {
  EXPECT_EQ(parse_cores("0").value(), (CoreSet{0}));
  EXPECT_EQ(parse_cores("8,0-2").value(), (CoreSet{0, 1, 2, 8}));
  EXPECT_EQ(to_text({0, 1, 2, 8, 10, 11}), "0-2,8,10-11");
  for (const char* wrong : {"", "a", "1-", "-1", "3-1", "1,,2", "1,1", "0-70000", "1 2", "0-3|4"})
    EXPECT_FALSE(parse_cores(wrong).ok()) << wrong;
}

TEST(CoreSets, RefusesOverlappingSets) {
  EXPECT_EQ(parse_core_sets("0-1|4,6").value(), (std::vector<CoreSet>{{0, 1}, {4, 6}}));
  EXPECT_EQ(parse_core_sets("0-1|1-2").error().message, "CPU 1 is in two sets");
  EXPECT_FALSE(parse_core_sets("0|").ok());
}

TEST(CoreSets, NumaNodesListUsableCpus) {
  const testing::TempDir dir;
  for (const char* node : {"node10", "node2", "node3", "node1"})
    std::filesystem::create_directory(dir.path() + "/" + node);
  const int mine = cpus_of_affinity().front();
  dir.write("node10/cpulist", std::to_string(mine) + "\n");
  dir.write("node2/cpulist", "60000-60003\n");  // not usable by this process
  dir.write("node3/cpulist", "\n");             // no CPUs
  dir.write("node1/cpulist", "a\n");
  dir.write("possible", "0-1\n");
  EXPECT_EQ(numa_nodes(dir.path()), (std::vector<CoreSet>{{mine}}));
  EXPECT_TRUE(numa_nodes(dir.path() + "/none").empty());
}

TEST(CoreSets, RunBoundPinsBodyAndItsThreads) {
  const std::vector<int> before = cpus_of_affinity();
  const CoreSet one{before.back()};
  std::vector<int> own, later;
  run_bound(one, [&] {
    own = cpus_of_affinity();
    std::thread([&] { later = cpus_of_affinity(); }).join();
  });
  EXPECT_EQ(own, one);
  EXPECT_EQ(later, one);
  EXPECT_EQ(cpus_of_affinity(), before);
  EXPECT_THROW(run_bound(one, [] { throw std::runtime_error("x"); }), std::runtime_error);
  run_bound({}, [&] { own = cpus_of_affinity(); });
  EXPECT_EQ(own, before) << "on the calling thread";
}

}  // namespace
}  // namespace valora
