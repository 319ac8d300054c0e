#include "scheduler/ngram_index.h"

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

// Tokens arrive a few at a time, as in a running sequence.
TEST(NgramIndex, FindsTheLastOccurrenceOfTheMostTokens) {
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    std::vector<int32_t> tokens;
    const int longest = 1 + static_cast<int>(random() % 6),
              least = 1 + static_cast<int>(random() % longest);
    NgramIndex index;
    while (tokens.size() < 40) {
      for (unsigned more = random() % 4 + 1; more > 0; --more)
        tokens.push_back(static_cast<int32_t>(random() % 3));
      ASSERT_EQ(index.continuation(tokens, longest, least),
                continuation_by_definition(tokens, longest, least))
          << ::testing::PrintToString(tokens) << longest << least;
    }
  }
}

TEST(NgramIndex, ShortSequencesHaveNone) {
  NgramIndex index;
  EXPECT_EQ(index.continuation({}, 3, 2), 0u);
  const std::vector<int32_t> two = {7, 7};
  EXPECT_EQ(index.continuation(two, 3, 2), 0u);
  EXPECT_EQ(NgramIndex().continuation(two, 3, 1), 1u);
}

}  // namespace
}  // namespace valora::scheduler
