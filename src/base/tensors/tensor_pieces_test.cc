#include "base/tensors/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <map>

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

// Bytes that this process has read from files.
uint64_t bytes_read() {
  std::ifstream io("/proc/self/io");
  std::string name;
  uint64_t bytes = 0;
  io >> name >> bytes;
  EXPECT_EQ(name, "rchar:");
  return bytes;
}

TEST_F(TensorPieces, VisitsOfAllTensorsReadTheHeaderOnce) {
  constexpr int kTensors = 2000;
  std::map<std::string, testing::RawTensor> tensors;
  for (int i = 0; i < kTensors; ++i)
    tensors["tensor " + std::to_string(i)] = f32_tensor({1}, {static_cast<float>(i)});
  const std::string text = safetensors_text(tensors);
  const auto nothing = [](const std::string&) { return false; };
  const auto file = SafeTensors::read(dir_.write("x", text), SIZE_MAX, nothing).value();
  const uint64_t before = bytes_read();
  for (const auto& [name, view] : file->tensors()) {
    const Status done = visit_pieces(*file, name, [&](size_t, const TensorView& piece) {
      EXPECT_EQ(std::memcmp(piece.bytes.data(), tensors[name].bytes.data(), sizeof(float)), 0);
      return Status();
    });
    ASSERT_TRUE(done.ok());
  }
  EXPECT_LT(bytes_read() - before, 4 * text.size());
}

TEST_F(TensorPieces, SameFileReadTwiceIsVisitedAfterOneIsGone) {
  const auto first = headers();
  const auto nothing = [](const std::string&) { return false; };
  auto second = SafeTensors::read(dir_.file("x"), SIZE_MAX, nothing).value();
  second = nullptr;
  const auto two_values = [](size_t, const TensorView& piece) {
    EXPECT_EQ(piece.bytes.size(), 2 * sizeof(float));
    return Status();
  };
  EXPECT_TRUE(visit_pieces(*first, "a", two_values).ok());
}

}  // namespace
}  // namespace valora
