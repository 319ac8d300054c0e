#include "scheduler/proposer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace valora::scheduler {
namespace {

// By definition: for n from `longest` down, the last earlier occurrence of the last n tokens.
size_t continuation_by_definition(std::span<const int32_t> tokens, size_t longest, size_t least) {
  const size_t count = tokens.size();
  for (size_t n = std::min(longest, count - 1); n >= std::max<size_t>(least, 1); --n)
    for (size_t end = count - 1; end >= n; --end)
      if (std::ranges::equal(tokens.subspan(end - n, n), tokens.last(n))) return end;
  return 0;
}

TEST(Proposer, FindsTheLastOccurrenceOfTheMostTokens) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::vector<int32_t> tokens(1 + random() % 40);
    for (int32_t& token : tokens) token = static_cast<int32_t>(random() % 3);
    const int longest = 1 + static_cast<int>(random() % 6),
              least = 1 + static_cast<int>(random() % longest);
    ASSERT_EQ(find_continuation(tokens, longest, least),
              continuation_by_definition(tokens, longest, least))
        << ::testing::PrintToString(tokens) << longest << least;
  }
}

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
