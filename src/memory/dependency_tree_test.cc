#include "memory/dependency_tree.h"

#include <gtest/gtest.h>

#include <random>

namespace valora::memory {
namespace {

const Digest kBase{};
const Digest kAdapter = digest_of("adapter");

Digest key(std::string_view name) { return digest_of(name); }

class DependencyTreeTest : public ::testing::Test {
 protected:
  // Inserts keys.back() with a new block, which the caller holds.
  BlockId insert(const Digest& adapter, const std::vector<Digest>& keys) {
    const BlockId block = *arena.allocate();
    EXPECT_TRUE(tree.insert(adapter, keys, block));
    return block;
  }
  BlockId insert_idle(const Digest& adapter, const std::vector<Digest>& keys) {
    const BlockId block = insert(adapter, keys);
    tree.release(block);
    return block;
  }
  bool cached(const Digest& adapter, const std::vector<Digest>& keys) {
    return tree.find(adapter, keys).blocks == static_cast<int32_t>(keys.size());
  }
  void TearDown() override {
    EXPECT_EQ(tree.check(), "");
    EXPECT_EQ(arena.check(), "");
  }

  BlockArena arena{16};
  DependencyTree tree{arena};
  const Digest a = key("a"), b = key("b"), c = key("c"), d = key("d");
};

TEST_F(DependencyTreeTest, MatchesTheLongestChainAndHoldsIt) {
  const BlockId first = insert_idle(kBase, {a}), second = insert_idle(kBase, {a, b});
  EXPECT_EQ(tree.evictable_blocks(), 2);
  const std::vector<Digest> keys{a, b, c};
  EXPECT_EQ(tree.match(kBase, keys), (std::vector<BlockId>{first, second}));
  EXPECT_EQ(arena.references(first), 2);
  EXPECT_EQ(tree.evictable_blocks(), 0);
  EXPECT_FALSE(tree.evict_one());
  tree.release(second);
  tree.release(first);
  EXPECT_EQ(tree.evictable_blocks(), 2);
}

TEST_F(DependencyTreeTest, FindsNothingUnderAnotherAdapterOrParent) {
  insert_idle(kBase, {a});
  insert_idle(kBase, {a, b});
  EXPECT_TRUE(tree.match(kAdapter, std::vector{a}).empty());
  EXPECT_TRUE(tree.match(kBase, std::vector{b}).empty());
  EXPECT_FALSE(tree.contains(kAdapter, a));
  EXPECT_TRUE(tree.contains(kBase, b));
}

TEST_F(DependencyTreeTest, FindTellsWhatIsEvictableAndTakesNothing) {
  const BlockId first = insert(kBase, {a});
  insert_idle(kBase, {a, b});
  const DependencyTree::Found found = tree.find(kBase, std::vector{a, b, c});
  EXPECT_EQ(found.blocks, 2);
  EXPECT_EQ(found.evictable, 1);
  EXPECT_EQ(arena.references(first), 2);
}

TEST_F(DependencyTreeTest, InsertNeedsTheChainAndKeepsThePresentBlock) {
  const BlockId block = *arena.allocate(), other = *arena.allocate();
  EXPECT_FALSE(tree.insert(kBase, std::vector{a, b}, block));
  EXPECT_TRUE(tree.insert(kBase, std::vector{a}, block));
  EXPECT_FALSE(tree.insert(kBase, std::vector{a}, other));
  EXPECT_FALSE(tree.insert(kAdapter, std::vector{a, b}, other));
  EXPECT_EQ(arena.references(other), 1);
  EXPECT_EQ(tree.nodes(), 1);
}

TEST_F(DependencyTreeTest, EvictsLeavesByLastUse) {
  insert_idle(kBase, {a});
  insert_idle(kBase, {a, b});
  insert_idle(kBase, {c});
  insert_idle(kAdapter, {d});
  // The chain a–b is now the most recently used, though its blocks are the oldest.
  for (BlockId block : tree.match(kBase, std::vector{a, b})) tree.release(block);
  EXPECT_TRUE(tree.evict_one());
  EXPECT_FALSE(cached(kBase, {c}));
  EXPECT_TRUE(tree.evict_one());
  EXPECT_FALSE(cached(kAdapter, {d}));
  EXPECT_TRUE(tree.evict_one());
  EXPECT_TRUE(cached(kBase, {a}));  // a parent is never evicted before its child
  EXPECT_FALSE(cached(kBase, {a, b}));
  EXPECT_TRUE(tree.evict_one());
  EXPECT_FALSE(tree.evict_one());
  EXPECT_EQ(arena.free_blocks(), 16);
}

TEST_F(DependencyTreeTest, AHeldNodeKeepsItsAncestorsThoughNobodyHoldsThem) {
  insert_idle(kBase, {a});
  insert_idle(kBase, {a, b});
  const BlockId private_continuation = insert(kBase, {a, b, c});
  EXPECT_EQ(tree.evictable_blocks(), 0);
  EXPECT_FALSE(tree.evict_one());
  tree.drop_adapter(kBase);
  EXPECT_EQ(tree.nodes(), 3);
  tree.release(private_continuation);
  EXPECT_EQ(tree.evictable_blocks(), 3);
}

TEST_F(DependencyTreeTest, DropAdapterSparesOthersAndWhatIsInUse) {
  const BlockId used = insert(kAdapter, {a});
  insert_idle(kAdapter, {a, b});
  insert_idle(kAdapter, {c});
  insert_idle(kBase, {d});
  tree.drop_adapter(kAdapter);
  EXPECT_TRUE(cached(kAdapter, {a}));
  EXPECT_FALSE(cached(kAdapter, {a, b}));
  EXPECT_FALSE(cached(kAdapter, {c}));
  EXPECT_TRUE(cached(kBase, {d}));
  tree.release(used);
  tree.drop_adapter(kAdapter);
  EXPECT_EQ(tree.nodes(), 1);
  tree.drop_adapter(key("unknown"));
  EXPECT_EQ(arena.free_blocks(), 15);
}

TEST_F(DependencyTreeTest, CheckSeesAReferenceThatWentPastTheTree) {
  const BlockId block = insert_idle(kBase, {a});
  arena.retain(block);
  EXPECT_NE(tree.check(), "");
  arena.release(block);
}

// Random matches, inserts, releases, evictions and drops. The invariants hold after each, and
// eviction frees exactly evictable_blocks() blocks.
TEST(DependencyTreeProperty, InvariantsHoldUnderRandomUse) {
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    std::mt19937 random(seed);
    BlockArena arena(12);
    DependencyTree tree(arena);
    const std::vector<Digest> adapters{kBase, kAdapter};
    const auto chain_key = [](const std::string& path) { return digest_of(path); };
    std::vector<BlockId> held;
    const auto any = [&](size_t n) { return static_cast<size_t>(random() % n); };
    for (int step = 0; step < 4000; ++step) {
      // A random path in a ternary tree of depth four.
      const size_t adapter = any(2);
      std::string path = std::to_string(adapter);
      std::vector<Digest> keys;
      for (size_t depth = 1 + any(4); depth > 0; --depth)
        keys.push_back(chain_key(path += char('x' + any(3))));
      switch (any(6)) {
        case 0:
        case 1: {
          const int32_t expected = tree.find(adapters[adapter], keys).blocks;
          const auto blocks = tree.match(adapters[adapter], keys);
          ASSERT_EQ(static_cast<int32_t>(blocks.size()), expected);
          for (BlockId block : blocks) held.push_back(block);
          break;
        }
        case 2: {
          auto block = arena.allocate();
          if (!block && tree.evict_one()) block = arena.allocate();
          if (!block) break;
          tree.insert(adapters[adapter], keys, *block);
          held.push_back(*block);
          break;
        }
        case 3:
        case 4:
          for (size_t n = any(6); n > 0 && !held.empty(); --n) {
            std::swap(held[any(held.size())], held.back());
            tree.release(held.back());
            held.pop_back();
          }
          break;
        case 5:
          if (any(20) == 0) tree.drop_adapter(adapters[adapter]);
          if (any(20) == 0) {
            const int32_t promised = tree.evictable_blocks(), free = arena.free_blocks();
            while (tree.evict_one()) {
            }
            ASSERT_EQ(arena.free_blocks(), free + promised);
          }
          break;
      }
      ASSERT_EQ(tree.check(), "") << "seed " << seed << " step " << step;
      ASSERT_EQ(arena.check(), "");
    }
    for (BlockId block : held) tree.release(block);
    EXPECT_EQ(tree.evictable_blocks(), tree.nodes());
    while (tree.evict_one()) ASSERT_EQ(tree.check(), "");
    EXPECT_EQ(arena.free_blocks(), arena.total_blocks());
  }
}

}  // namespace
}  // namespace valora::memory
