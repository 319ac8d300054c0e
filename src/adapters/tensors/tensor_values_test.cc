#include "adapters/tensors/tensor_values.h"

#include <gtest/gtest.h>

#include <cstring>

namespace valora::adapters {
namespace {

// Checks a misaligned buffer of `good` words with `odd` at `position`.
template <typename Word>
bool finite_with(DType dtype, size_t count, Word good, size_t position, Word odd) {
  std::vector<Word> words(count, good);
  if (position < count) words[position] = odd;
  std::vector<uint8_t> bytes(count * sizeof(Word) + 1);
  std::memcpy(bytes.data() + 1, words.data(), count * sizeof(Word));
  return all_finite(
      {dtype, {static_cast<int64_t>(count)}, std::span<const uint8_t>(bytes).subspan(1)});
}

TEST(AllFinite, FindsOneBadValueAnywhere) {
  for (const size_t count : {1, 7, 1023, 1024, 1025, 3000}) {
    for (const size_t position : {size_t{0}, count / 2, count - 1}) {
      EXPECT_FALSE((finite_with<uint32_t>(DType::kF32, count, 0x3F800000, position, 0x7F800000)))
          << count;  // inf
      EXPECT_FALSE((finite_with<uint32_t>(DType::kF32, count, 0x3F800000, position, 0xFF800001)))
          << count;  // NaN
      EXPECT_FALSE((finite_with<uint16_t>(DType::kF16, count, 0x3C00, position, 0x7C00))) << count;
      EXPECT_FALSE((finite_with<uint16_t>(DType::kF16, count, 0x3C00, position, 0xFE00))) << count;
      EXPECT_FALSE((finite_with<uint16_t>(DType::kBF16, count, 0x3F80, position, 0xFF80))) << count;
      EXPECT_FALSE((finite_with<uint16_t>(DType::kBF16, count, 0x3F80, position, 0x7FC0))) << count;
    }
  }
}

TEST(AllFinite, AcceptsTheLargestAndSmallestValues) {
  for (const uint32_t word : {0x7F7FFFFFu, 0xFF7FFFFFu, 0x00000001u, 0x80000000u})
    EXPECT_TRUE((finite_with<uint32_t>(DType::kF32, 5, 0, 2, word))) << word;
  for (const uint16_t word : {0x7BFF, 0xFBFF, 0x0001, 0x8000})
    EXPECT_TRUE((finite_with<uint16_t>(DType::kF16, 5, 0, 2, word))) << word;
  for (const uint16_t word : {0x7F7F, 0xFF7F, 0x0001, 0x8000, 0x7C00})
    EXPECT_TRUE((finite_with<uint16_t>(DType::kBF16, 5, 0, 2, word))) << word;
  EXPECT_TRUE(all_finite({DType::kF32, {0}, {}}));
}

TEST(ShapeText, FormatsShapes) {
  EXPECT_EQ(shape_text({}), "[]");
  EXPECT_EQ(shape_text({8, 64}), "[8, 64]");
}

}  // namespace
}  // namespace valora::adapters
