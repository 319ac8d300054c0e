#include "engine/ranks/rank_options.h"

#include <gtest/gtest.h>

#include "base/machine/cores.h"

namespace valora {
namespace {

EngineOptions of_ranks(int ranks, const std::string& cores) {
  EngineOptions options;
  options.tensor_parallel_size = ranks;
  options.rank_cores = cores;
  return options;
}

using Sets = std::vector<CoreSet>;

TEST(RankCores, AutoSplitsNodesEqually) {
  const Sets nodes{{0, 1, 2, 3, 8}, {4, 5, 6, 7}};
  EXPECT_EQ(rank_cores(of_ranks(2, "auto"), nodes).value(), nodes);
  EXPECT_EQ(rank_cores(of_ranks(4, "auto"), nodes).value(), (Sets{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  for (const int ranks : {1, 3, 10})
    EXPECT_EQ(rank_cores(of_ranks(ranks, "auto"), nodes).value(), Sets()) << ranks;
  EXPECT_EQ(rank_cores(of_ranks(2, "auto"), {{0, 1}}).value(), Sets()) << "one node";
  EXPECT_EQ(rank_cores(of_ranks(2, "auto"), {}).value(), Sets());
  EXPECT_EQ(rank_cores(of_ranks(2, "none"), nodes).value(), Sets());
}

TEST(RankCores, OptionListsCores) {
  const std::vector<int> usable = cpus_of_affinity();
  const std::string first = std::to_string(usable.front());
  EXPECT_EQ(rank_cores(of_ranks(1, first), {}).value(), (Sets{{usable.front()}}));
  const auto refusal = [](int ranks, const std::string& cores) {
    const auto made = rank_cores(of_ranks(ranks, cores), {});
    return made.ok() ? "" : made.error().message;
  };
  EXPECT_EQ(refusal(2, first), "--rank-cores: one CPU set per rank is needed: expected 2, got 1");
  EXPECT_EQ(refusal(2, "x|1"), "--rank-cores: \"x\" is not a CPU number");
  EXPECT_NE(refusal(1, "65535").find("may not use CPU 65535"), std::string::npos);
}

}  // namespace
}  // namespace valora
