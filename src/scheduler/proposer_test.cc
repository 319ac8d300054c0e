#include "scheduler/proposer.h"

#include <gtest/gtest.h>

namespace valora::scheduler {
namespace {

std::vector<int32_t> guesses_after(std::vector<int32_t> tokens, int most) {
  Request request;
  request.tokens = std::move(tokens);
  return NgramProposer({.tokens = 4, .longest = 3, .least = 2}).propose(request, most);
}

TEST(Proposer, ProposesTokensThatFollowedEarlierMatch) {
  EXPECT_EQ(guesses_after({1, 2, 3, 4, 5, 6, 9, 1, 2, 3}, 9), (std::vector<int32_t>{4, 5, 6, 9}));
  EXPECT_EQ(guesses_after({1, 2, 3, 4, 5, 6, 9, 1, 2, 3}, 2), (std::vector<int32_t>{4, 5}));
  EXPECT_EQ(guesses_after({3, 4, 5, 9, 1, 3}, 9), (std::vector<int32_t>{})) << "one token is few";
  EXPECT_EQ(guesses_after({7}, 9), (std::vector<int32_t>{}));
  EXPECT_EQ(guesses_after({7, 8, 1, 2, 1, 2}, 9), (std::vector<int32_t>{1, 2, 1, 2}))
      << "a sequence that repeats itself goes on so";
}

}  // namespace
}  // namespace valora::scheduler
