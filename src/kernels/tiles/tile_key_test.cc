#include "kernels/tiles/tile_key.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

namespace valora::kernels {
namespace {

TEST(TileKey, RoundTripsShape) {
  const Processor processors[] = {Isa::kAvx512Bf16, Isa::kAvx512,    Isa::kAvx2,
                                  Isa::kPortable,   CudaArch::kSm80, CudaArch::kSm90};
  for (const ProductKind kind : {ProductKind::kDense, ProductKind::kShrink, ProductKind::kExpand})
    for (const bool float32 : {false, true})
      for (const Processor processor : processors)
        for (const int64_t n :
             {int64_t{1}, int64_t{152064}, (int64_t{1} << 24) - 1, int64_t{1} << 24, kMostSize}) {
          const ProductShape shape{kind, float32, processor, 48, n, kMostSize - n};
          EXPECT_EQ(TileKey::of(shape).shape(), shape);
        }
}

TEST(TileKey, DependsOnProcessor) {
  std::set<uint64_t> families;
  for (const Processor processor : {Processor(Isa::kAvx512Bf16), Processor(Isa::kAvx512),
                                    Processor(CudaArch::kSm80), Processor(CudaArch::kSm90)})
    families.insert(TileKey::of({ProductKind::kDense, false, processor, 1, 16, 16}).family());
  EXPECT_EQ(families.size(), 4u);
}

TEST(TileKey, IsUniqueOverLargeGrid) {
  std::set<std::tuple<uint64_t, uint64_t>> keys;
  std::set<uint64_t> hashes;
  size_t shapes = 0;
  for (const ProductKind kind : {ProductKind::kDense, ProductKind::kShrink, ProductKind::kExpand})
    for (const bool float32 : {false, true})
      for (const Isa isa : {Isa::kAvx512Bf16, Isa::kAvx2})
        for (int64_t m = 1; m <= 4096; m = next_bucket(m))
          for (int64_t n = 1; n < 40000; n = n * 3 / 2 + 1)
            for (int64_t k = 1; k < 40000; k = k * 3 / 2 + 1) {
              const TileKey key = TileKey::of({kind, float32, isa, m, n, k});
              keys.insert({key.high, key.low});
              hashes.insert(key.hash());
              ++shapes;
            }
  EXPECT_GT(shapes, 100000u);
  EXPECT_EQ(keys.size(), shapes);
  EXPECT_GT(hashes.size(), shapes - 10);
}

// The per-thread cache of choices is indexed by the lowest bits of the hash.
TEST(TileKey, LowHashBitsSpreadModelShapes) {
  std::map<uint64_t, int> sets;
  int shapes = 0;
  for (const ProductKind kind : {ProductKind::kDense, ProductKind::kShrink, ProductKind::kExpand})
    for (const int64_t n : {16, 128, 896, 4864, 18944, 151936})
      for (const int64_t k : {16, 64, 896, 4864})
        for (const int64_t m : {1, 8, 64}) {
          ++sets[TileKey::of({kind, false, Isa::kAvx2, m, n, k}).hash() % 128];
          ++shapes;
        }
  EXPECT_EQ(shapes, 216);
  EXPECT_GT(sets.size(), 90u);
  EXPECT_LT(std::ranges::max_element(sets, {}, [](const auto& set) { return set.second; })->second,
            8);
}

TEST(TileKey, ClampsOutOfRangeSizes) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(),
                    kMost = std::numeric_limits<int64_t>::max();
  const ProductShape low =
      TileKey::of({ProductKind::kShrink, true, Isa::kAvx2, kLeast, kLeast, -1}).shape();
  EXPECT_EQ(low, (ProductShape{ProductKind::kShrink, true, Isa::kAvx2, 1, 0, 0}));
  const ProductShape high =
      TileKey::of({ProductKind::kShrink, true, Isa::kAvx2, kMost, kMost, kMostSize + 1}).shape();
  EXPECT_EQ(high, (ProductShape{ProductKind::kShrink, true, Isa::kAvx2, kMostTokens, kMostSize,
                                kMostSize}));
}

TEST(TokenBuckets, AreNearestStepAndIdempotent) {
  for (int64_t m = 0; m <= 16; ++m) EXPECT_EQ(token_bucket(m), std::max<int64_t>(1, m));
  EXPECT_EQ(token_bucket(19), 16);
  EXPECT_EQ(token_bucket(20), 24);
  EXPECT_EQ(token_bucket(27), 24);
  EXPECT_EQ(token_bucket(28), 32);
  EXPECT_EQ(token_bucket(2048), 2048);
  int64_t before = 0;
  for (int64_t m = 1; m < 10000; ++m) {
    const int64_t bucket = token_bucket(m);
    EXPECT_GE(bucket, before);
    EXPECT_EQ(token_bucket(bucket), bucket);
    if (before > 0 && bucket != before) {
      EXPECT_EQ(next_bucket(before), bucket);
    }
    before = bucket;
  }
}

}  // namespace
}  // namespace valora::kernels
