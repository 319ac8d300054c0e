#include "base/tensor_pieces.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/testing/safetensors_text.h"
#include "base/testing/temp_dir.h"

namespace valora {
namespace {

using testing::f32_tensor;
using testing::safetensors_text;

constexpr size_t kMany = (3 << 18) + 5;  // more than three pieces

std::vector<float> numbered(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
  return values;
}

class TensorPieces : public ::testing::Test {
 protected:
  // A file of which only the header is read.
  std::shared_ptr<const SafeTensors> headers(size_t padding = 0) {
    dir_.write("x", safetensors_text({{"a", f32_tensor({2}, {7, 8})},
                                      {"many", f32_tensor({kMany, 1}, numbered(kMany))},
                                      {"none", f32_tensor({0, 4}, {})}},
                                     padding));
    return SafeTensors::read(dir_.file("x"), SIZE_MAX, [](const std::string&) { return false; })
        .value();
  }
  testing::TempDir dir_;
};

TEST_F(TensorPieces, VisitsWholeTensorInOrder) {
  for (const size_t padding : {0, 3}) {
    const auto file = headers(padding);
    std::vector<float> read;
    const Status done = visit_pieces(*file, "many", [&](size_t first, const TensorView& piece) {
      EXPECT_EQ(first, read.size());
      EXPECT_EQ(piece.dtype, DType::kF32);
      EXPECT_EQ(piece.shape, std::vector<int64_t>{int64_t(piece.bytes.size() / sizeof(float))});
      read.resize(first + piece.bytes.size() / sizeof(float));
      std::memcpy(read.data() + first, piece.bytes.data(), piece.bytes.size());
      return Status();
    });
    ASSERT_TRUE(done.ok()) << done.error().message;
    EXPECT_EQ(read, numbered(kMany));
  }
}

TEST_F(TensorPieces, EmptyTensorHasNoPieces) {
  EXPECT_TRUE(visit_pieces(*headers(), "none", [](size_t, const TensorView&) {
                return Status(invalid("visited"));
              }).ok());
}

TEST_F(TensorPieces, StopsAtFirstVisitorError) {
  size_t visited = 0;
  const Status done = visit_pieces(*headers(), "many", [&](size_t, const TensorView&) {
    return ++visited < 2 ? Status() : Status(invalid("enough"));
  });
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().message, "enough");
  EXPECT_EQ(visited, 2u);
}

TEST_F(TensorPieces, RefusesChangedFile) {
  const auto file = headers();
  dir_.write("x", safetensors_text({{"many", f32_tensor({1}, {1})}}));
  const Status done =
      visit_pieces(*file, "many", [](size_t, const TensorView&) { return Status(); });
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::kConflict);
}

}  // namespace
}  // namespace valora
