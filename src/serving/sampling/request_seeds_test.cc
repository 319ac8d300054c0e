#include "serving/sampling/request_seeds.h"

#include <gtest/gtest.h>

#include <set>

namespace valora::serving {
namespace {

std::vector<uint64_t> seeds_of(std::optional<int64_t> server) {
  RequestSeeds seeds(server);
  return {seeds.next(), seeds.next(), seeds.next()};
}

TEST(RequestSeeds, AreDerivedFromServerSeed) {
  EXPECT_EQ(seeds_of(7), seeds_of(7));
  EXPECT_EQ(seeds_of(-7), seeds_of(-7));
  std::set<uint64_t> all;
  for (const std::optional<int64_t> server : {std::optional<int64_t>(7), {-7}, {0}, {}, {}})
    for (const uint64_t seed : seeds_of(server)) all.insert(seed);
  EXPECT_EQ(all.size(), 15u);
}

}  // namespace
}  // namespace valora::serving
