#include "models/quantised/gguf_blocks.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <numeric>

#include "ops/weights/weight.h"

namespace valora::models {
namespace {

// Pseudo-random bytes, except the fp16 fields that scale a block: about 0.06.
at::Tensor some_blocks(GgufType type, int64_t count, std::vector<size_t> halves) {
  const auto size = static_cast<int64_t>(block_of(type).bytes);
  at::Tensor bytes = at::empty({2, count * size / 2}, at::kByte);
  auto* const data = bytes.mutable_data_ptr<uint8_t>();
  uint64_t state = 1;
  for (int64_t i = 0; i < count * size; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    data[i] = static_cast<uint8_t>(state >> 56);
  }
  for (int64_t b = 0; b < count; ++b)
    for (size_t k = 0; k < halves.size(); ++k) {
      const auto bits = static_cast<uint16_t>(0x2C00 + 37 * b + 11 * static_cast<int64_t>(k));
      std::memcpy(data + b * size + static_cast<int64_t>(halves[k]), &bits, 2);
    }
  return bytes;
}

// 64-bit FNV-1a over the values, with negative zeros made positive.
uint64_t digest_of_values(const at::Tensor& any) {
  const at::Tensor values = any + 0;
  uint64_t digest = 0xcbf29ce484222325u;
  const auto* bytes = static_cast<const uint8_t*>(values.const_data_ptr());
  for (size_t i = 0; i < values.nbytes(); ++i) digest = (digest ^ bytes[i]) * 0x100000001b3u;
  return digest;
}

struct Golden {
  GgufType type;
  std::vector<size_t> halves;
  uint64_t digest;  // as decoded by the gguf package: tests/parity/test_gguf.py
};
const std::array<Golden, 12> kGolden{{{GgufType::kQ4_0, {0}, 0xc8666b1561afe4fc},
                                      {GgufType::kQ4_1, {0, 2}, 0xa4593fe7bbec8f90},
                                      {GgufType::kQ5_0, {0}, 0xedd3fff685f02a0d},
                                      {GgufType::kQ5_1, {0, 2}, 0xa5babc75cdb85b46},
                                      {GgufType::kQ8_0, {0}, 0x5257c7d815015374},
                                      {GgufType::kQ4_K, {0, 2}, 0x9267ada6311b6b1},
                                      {GgufType::kQ5_K, {0, 2}, 0x8feb6d16c571d164},
                                      {GgufType::kQ6_K, {208}, 0x6e4141da576e30a6},
                                      {GgufType::kQ2_K, {80, 82}, 0x9f1b86eb1aab9e6d},
                                      {GgufType::kQ3_K, {108}, 0xe06208d43a0428c4},
                                      {GgufType::kIQ4_NL, {0}, 0x9872968075886089},
                                      {GgufType::kIQ4_XS, {0}, 0xe913b6e07468d84a}}};

TEST(GgufBlocks, DecodingIsBitExact) {
  for (const Golden& golden : kGolden) {
    SCOPED_TRACE(block_of(golden.type).name);
    const at::Tensor bytes = some_blocks(golden.type, 6, golden.halves);
    ops::QuantisedTensor q = read_blocks(golden.type, bytes);
    q.check();
    const at::Tensor values = q.decoded();
    EXPECT_EQ(digest_of_values(values), golden.digest);
    EXPECT_TRUE(at::equal(decode_blocks(golden.type, bytes, at::kFloat), values));
    EXPECT_TRUE(
        at::equal(decode_blocks(golden.type, bytes, at::kBFloat16), values.to(at::kBFloat16)));

    const BlockIntegers kept = integers_of_blocks(golden.type);
    EXPECT_EQ(q.bits, kept.form.bits);
    EXPECT_EQ(q.group, kept.form.group);
    EXPECT_EQ(q.minimums.defined(), kept.minimums);
    const ops::Weight weight(q, at::kFloat, at::kCPU);
    EXPECT_TRUE(at::equal(weight.unpacked(), values)) << "integers in panels";
    EXPECT_EQ(weight.bytes(),
              ops::quantised_bytes(q.out(), q.in(), kept.form, kept.float_scales, kept.minimums));
  }
}

TEST(GgufBlocks, RowsOfHalvesUndoInterleaving) {
  // Two heads of six rows: the file stores each as 0 3 1 4 2 5.
  const at::Tensor rows = rows_of_halves(12, 6);
  const at::Tensor stored = at::tensor({0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11}, at::kLong);
  EXPECT_TRUE(at::equal(stored.index_select(0, rows), at::arange(12, at::kLong)));
}

}  // namespace
}  // namespace valora::models
