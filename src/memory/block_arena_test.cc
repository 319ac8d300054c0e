#include "memory/block_arena.h"

#include <gtest/gtest.h>

#include <set>

namespace valora::memory {
namespace {

TEST(BlockArena, HandsOutEveryBlockOnce) {
  BlockArena arena(5);
  std::set<BlockId> blocks;
  for (int i = 0; i < 5; ++i) {
    const auto block = arena.allocate();
    ASSERT_TRUE(block);
    EXPECT_EQ(arena.references(*block), 1);
    blocks.insert(*block);
  }
  EXPECT_EQ(blocks, (std::set<BlockId>{0, 1, 2, 3, 4}));
  EXPECT_EQ(arena.free_blocks(), 0);
  EXPECT_FALSE(arena.allocate());
  EXPECT_EQ(arena.check(), "");
}

TEST(BlockArena, OnlyTheLastReleaseFrees) {
  BlockArena arena(1);
  const BlockId block = *arena.allocate();
  arena.retain(block);
  arena.release(block);
  EXPECT_EQ(arena.free_blocks(), 0);
  arena.release(block);
  EXPECT_EQ(arena.free_blocks(), 1);
  EXPECT_EQ(arena.allocate(), block);
}

TEST(BlockArena, EmptyArenaHasNoBlocks) {
  for (int32_t blocks : {0, -3}) {
    BlockArena arena(blocks);
    EXPECT_EQ(arena.total_blocks(), 0);
    EXPECT_FALSE(arena.allocate());
  }
}

TEST(BlockArena, BlocksForTokensRoundsUp) {
  EXPECT_EQ(blocks_for(0), 0);
  EXPECT_EQ(blocks_for(1), 1);
  EXPECT_EQ(blocks_for(kBlockTokens), 1);
  EXPECT_EQ(blocks_for(kBlockTokens + 1), 2);
}

}  // namespace
}  // namespace valora::memory
