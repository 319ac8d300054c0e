#include "kernels/tiles/choose.h"

#include <gtest/gtest.h>

#include <thread>

namespace valora::kernels {
namespace {

ProductShape dense(int64_t m, int64_t n, int64_t k) {
  return {ProductKind::kDense, false, Isa::kAvx512Bf16, m, n, k};
}
TileEntry entry(const ProductShape& shape, const Tile& tile) { return {TileKey::of(shape), tile}; }

class InUse : public ::testing::Test {
 protected:
  void TearDown() override { use_tiles(before_); }
  const std::shared_ptr<const TileTable> before_ = tiles_in_use();
};

TEST(Tiles, FormulaTilesFitInstructionSet) {
  for (const Isa isa : {Isa::kAvx512Bf16, Isa::kAvx512, Isa::kAvx2, Isa::kPortable})
    for (const ProductKind kind : {ProductKind::kDense, ProductKind::kShrink, ProductKind::kExpand})
      for (const bool float32 : {false, true})
        for (const int64_t m : {0, 1, 2, 5, 8, 9, 64, 4096})
          for (const int64_t n : {0, 1, 16, 33, 200, 5000})
            for (const int64_t k : {0, 1, 2, 16, 300}) {
              const ProductShape shape{kind, float32, isa, m, n, k};
              EXPECT_TRUE(is_tile_of(shape, formula_tile(shape)));
              EXPECT_TRUE(is_tile_of(shape, effective_tile(shape, formula_tile(shape))));
            }
}

constexpr ProductKind kCudaKinds[] = {ProductKind::kShrink, ProductKind::kExpand,
                                      ProductKind::kLongShrink, ProductKind::kLongExpand,
                                      ProductKind::kMerge};

TEST(Tiles, FormulaTilesAreCompiledForGpus) {
  for (const CudaArch arch : {CudaArch::kSm80, CudaArch::kSm90, CudaArch::kSm120})
    for (const ProductKind kind : kCudaKinds)
      for (const bool float32 : {false, true})
        for (const int64_t m : {0, 1, 16, 17, 64, 65, 4096})
          for (const int64_t n : {1, 8, 64, 5000})
            for (const int64_t k : {1, 64, 18944}) {
              const ProductShape shape{kind, float32, arch, m, n, k};
              EXPECT_TRUE(is_tile_of(shape, formula_tile(shape)));
              EXPECT_EQ(Tile(choose_cuda_tile(shape)), tiles_in_use()->choose(TileKey::of(shape)));
              const TileKey key = TileKey::of(shape);
              EXPECT_EQ(TileTable().choose(key), formula_tile(key.shape()));
            }
}

TEST(Tiles, GpuTilesAreCompiledOnes) {
  const ProductShape shrink{ProductKind::kShrink, false, CudaArch::kSm90, 8, 64, 3584},
      expand{ProductKind::kExpand, false, CudaArch::kSm90, 8, 3584, 16};
  ProductShape long_shrink = shrink;
  long_shrink.kind = ProductKind::kLongShrink;
  EXPECT_TRUE(is_tile_of(shrink, CudaTile{16, 4, 4, 16}));
  EXPECT_FALSE(is_tile_of(long_shrink, CudaTile{16, 4, 4, 16})) << "too many registers";
  EXPECT_FALSE(is_tile_of(shrink, CudaTile{24, 4, 2, 1}));
  EXPECT_FALSE(is_tile_of(shrink, CudaTile{16, 6, 2, 1}));
  EXPECT_FALSE(is_tile_of(shrink, CudaTile{16, 8, 2, 3}));
  EXPECT_TRUE(is_tile_of(expand, CudaTile{256, 4, 1, 1}));
  EXPECT_FALSE(is_tile_of(expand, CudaTile{512, 4, 1, 1})) << "a warp has at most two groups";
  EXPECT_FALSE(is_tile_of(expand, CudaTile{128, 4, 2, 1}));
  EXPECT_FALSE(is_tile_of(expand, CpuTile{})) << "another device's";
  const ProductShape merge{ProductKind::kMerge, false, CudaArch::kSm90, 1, 6 << 20, 256};
  EXPECT_TRUE(is_tile_of(merge, CudaTile{64, 4, 1, 1}));
  EXPECT_TRUE(is_tile_of(merge, CudaTile{128, 8, 3, 1}));
  EXPECT_FALSE(is_tile_of(merge, CudaTile{64, 4, 2, 1})) << "narrow tiles have one stage";
  EXPECT_FALSE(is_tile_of({ProductKind::kDense, false, CudaArch::kSm90, 1, 1, 1}, CudaTile{}));
}

TEST(Tiles, GpuTilesAreLimitedToProduct) {
  const auto shrink = [](int64_t n, int64_t k) {
    return ProductShape{ProductKind::kShrink, false, CudaArch::kSm90, 1, n, k};
  };
  EXPECT_EQ(effective_cuda_tile(shrink(16, 3584), {32, 8, 2, 4}), (CudaTile{16, 8, 2, 4}));
  EXPECT_EQ(effective_cuda_tile(shrink(17, 3584), {32, 8, 2, 4}), (CudaTile{32, 8, 2, 4}));
  EXPECT_EQ(effective_cuda_tile(shrink(16, 1024), {16, 8, 2, 4}), (CudaTile{16, 8, 2, 2}))
      << "more than two thread blocks of 512 inputs would have none";
  const ProductShape expand{ProductKind::kExpand, false, CudaArch::kSm90, 1, 64, 16};
  EXPECT_EQ(effective_cuda_tile(expand, {512, 8, 1, 1}), (CudaTile{64, 2, 1, 1}));
}

TEST(Tiles, MergesOfHighRanksAreWideWhereTwoBlocksFit) {
  const auto merge = [](CudaArch arch, int64_t rank, bool float32) {
    return cuda_formula_tile({ProductKind::kMerge, float32, arch, 1, 6 << 20, rank});
  };
  EXPECT_EQ(merge(CudaArch::kSm90, 64, false), (CudaTile{64, 4, 1, 1}));
  EXPECT_EQ(merge(CudaArch::kSm90, 65, false), (CudaTile{128, 8, 3, 1}));
  EXPECT_EQ(merge(CudaArch::kSm89, 256, false), (CudaTile{64, 4, 1, 1}));
  EXPECT_EQ(merge(CudaArch::kSm90, 256, true), (CudaTile{64, 4, 1, 1}));
}

TEST(Tiles, TilesWithEqualEffectAreEqual) {
  EXPECT_EQ(effective_tile(dense(7, 900, 900), {6, 4, 1}),
            (CpuTile{4, 4, 1}));  // blocks of 4 and 3
  EXPECT_EQ(effective_tile(dense(13, 900, 900), {6, 4, 1}), (CpuTile{5, 4, 1}));  // 5, 4 and 4
  EXPECT_EQ(effective_tile(dense(1, 48, 2), {3, 8, 8}), (CpuTile{1, 2, 1}));
  EXPECT_EQ(effective_tile(dense(1, 48, 900), {3, 3, 4}), (CpuTile{1, 3, 4}));
}

TEST(TileTable, ChoosesExactThenNearestThenFormula) {
  const Tile one = CpuTile{1, 2, 8}, many = CpuTile{12, 2, 1};
  const TileTable table({entry(dense(1, 896, 896), one), entry(dense(64, 896, 896), many)});
  EXPECT_EQ(table.exact(TileKey::of(dense(1, 896, 896))), one);
  EXPECT_EQ(table.exact(TileKey::of(dense(66, 896, 896))), many) << "of the same bucket";
  EXPECT_EQ(table.exact(TileKey::of(dense(2, 896, 896))), std::nullopt);
  EXPECT_EQ(table.choose(TileKey::of(dense(2, 896, 1024))), one);
  EXPECT_EQ(table.choose(TileKey::of(dense(48, 1024, 896))), many);
  const ProductShape far = dense(1, 896 << 10, 896),
                     other{ProductKind::kShrink, false, Isa::kAvx512Bf16, 1, 896, 896};
  EXPECT_EQ(table.nearest(TileKey::of(far)), std::nullopt);
  EXPECT_EQ(table.choose(TileKey::of(far)), formula_tile(far));
  EXPECT_EQ(table.nearest(TileKey::of(other)), std::nullopt) << "another operation";
  ProductShape shape = dense(1, 896, 896);
  shape.processor = Isa::kAvx2;
  EXPECT_EQ(table.choose(TileKey::of(shape)), formula_tile(shape));
  shape = dense(1, 896, 896);
  shape.float32 = true;
  EXPECT_EQ(table.choose(TileKey::of(shape)), formula_tile(shape));
}

TEST(TileTable, TakesTheLastOfEqualKeys) {
  const TileTable table({entry(dense(3, 64, 64), CpuTile{1, 1, 1}),
                         entry(dense(2, 64, 64), CpuTile{2, 1, 1}),
                         entry(dense(3, 64, 64), CpuTile{3, 1, 1})});
  EXPECT_EQ(table.size(), 2u);
  EXPECT_EQ(table.exact(TileKey::of(dense(3, 64, 64))), Tile(CpuTile{3, 1, 1}));
}

// Between two measured token counts, the choice changes once: from the lower entry to the upper
// one.
TEST(TileTable, ChangesOnceBetweenTwoEntries) {
  const Tile low = CpuTile{1, 2, 8}, high = CpuTile{12, 2, 1};
  const TileTable table({entry(dense(1, 896, 896), low), entry(dense(16, 896, 896), high)});
  bool changed = false;
  for (int64_t m = 1; m <= 16; ++m) {
    const Tile tile = table.choose(TileKey::of(dense(m, 896, 896)));
    if (tile == high) changed = true;
    EXPECT_EQ(tile, changed ? high : low) << m;
  }
  EXPECT_TRUE(changed);
}

TEST(TileTable, DistanceIsSymmetricAndWeighsRanksMost) {
  const ProductShape a{ProductKind::kShrink, false, Isa::kAvx2, 4, 16, 1024};
  ProductShape rank = a, width = a;
  rank.n = 32;
  width.k = 2048;
  EXPECT_EQ(tile_distance(a, a), 0);
  EXPECT_EQ(tile_distance(a, rank), tile_distance(rank, a));
  EXPECT_GT(tile_distance(a, rank), tile_distance(a, width));
}

TEST(TileTable, SingleTileIsReducedToInstructionSet) {
  const TileTable table = TileTable::single({6, 4, 1});
  EXPECT_EQ(table.choose(TileKey::of(dense(100, 896, 896))), Tile(CpuTile{6, 4, 1}));
  for (const Isa isa : {Isa::kAvx2, Isa::kPortable})
    for (const CpuTile tile : {CpuTile{6, 4, 1}, CpuTile{12, 1, 1}, CpuTile{1, 8, 1},
                               CpuTile{1, 1, 8}, CpuTile{2, 2, 4}}) {
      ProductShape shape = dense(100, 896, 896);
      shape.processor = isa;
      EXPECT_TRUE(is_tile_of(shape, TileTable::single(tile).choose(TileKey::of(shape))));
    }
}

TEST_F(InUse, CurrentTableAppliesToEveryThread) {
  const ProductShape shape = dense(3, 320, 320);
  use_tiles(std::make_shared<const TileTable>());
  EXPECT_EQ(choose_cpu_tile(shape), cpu_formula_tile(shape));
  for (const uint8_t chains : {1, 2, 4}) {
    const Tile tile = CpuTile{2, 2, chains};
    use_tiles(std::make_shared<const TileTable>(std::vector<TileEntry>{entry(shape, tile)}));
    EXPECT_EQ(Tile(choose_cpu_tile(shape)), tile);
    EXPECT_EQ(Tile(choose_cpu_tile(shape)), tile);
    std::thread([&] { EXPECT_EQ(Tile(choose_cpu_tile(shape)), tile); }).join();
  }
}

// More shapes than one thread's cache can hold.
TEST_F(InUse, CacheOverflowKeepsChoices) {
  std::vector<TileEntry> entries;
  for (int64_t n = 16; n <= 16 * 2000; n += 16)
    entries.push_back(
        entry(dense(1, n, 64), CpuTile{1, 1, static_cast<uint8_t>(1 << (n / 16 % 4))}));
  use_tiles(std::make_shared<const TileTable>(entries));
  for (int round = 0; round < 2; ++round)
    for (const TileEntry& e : entries) ASSERT_EQ(Tile(choose_cpu_tile(e.key.shape())), e.tile);
}

}  // namespace
}  // namespace valora::kernels
