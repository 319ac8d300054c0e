#include "engine/memory/tensor_cache.h"

#include <gtest/gtest.h>

namespace valora {
namespace {

Digest key(int i) {
  DigestBuilder builder;
  return builder.add(i).finish();
}

TEST(TensorCache, KeepsTheRecentlyUsedWithinItsBytes) {
  TensorCache cache(3 * 40);
  for (int i = 0; i < 3; ++i) cache.insert(key(i), at::full({10}, i, at::kFloat));
  EXPECT_EQ(cache.bytes(), 120);
  EXPECT_EQ(cache.find(key(0))[0].item<float>(), 0);
  cache.insert(key(3), at::full({10}, 3, at::kFloat));
  EXPECT_FALSE(cache.find(key(1)).defined());
  for (int i : {0, 2, 3}) EXPECT_EQ(cache.find(key(i))[9].item<float>(), i);
  EXPECT_EQ(cache.bytes(), 120);
  EXPECT_EQ(cache.queries(), 5);
  EXPECT_EQ(cache.hits(), 4);
}

TEST(TensorCache, OversizedEntryIsNotStored) {
  TensorCache cache(100);
  const at::Tensor large = at::ones({26}, at::kFloat);
  cache.insert(key(1), large);
  EXPECT_FALSE(cache.find(key(1)).defined());
  EXPECT_EQ(cache.bytes(), 0);
  EXPECT_EQ(large.sum().item<float>(), 26);
}

TEST(TensorCache, FirstInsertOfKeyWins) {
  TensorCache cache(100);
  cache.insert(key(1), at::zeros({5}, at::kFloat));
  cache.insert(key(1), at::ones({5}, at::kFloat));
  EXPECT_EQ(cache.find(key(1))[0].item<float>(), 0);
  EXPECT_EQ(cache.bytes(), 20);
}

}  // namespace
}  // namespace valora
