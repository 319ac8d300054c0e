#include "base/tensors/safetensors.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <tuple>

#include "base/testing/safetensors_text.h"
#include "base/testing/temp_dir.h"

namespace valora {
namespace {

using testing::f32_tensor;
using testing::safetensors_text;

class SafeTensorsTest : public ::testing::Test {
 protected:
  Result<std::shared_ptr<const SafeTensors>> open(const std::string& content) {
    return SafeTensors::open(dir_.write("x.safetensors", content));
  }
  std::string refusal(const std::string& content) {
    const auto file = open(content);
    return file.ok() ? "accepted" : file.error().message;
  }
  std::string refusal(const std::string& header, size_t data_bytes) {
    return refusal(safetensors_text(header, std::string(data_bytes, '\0')));
  }

  testing::TempDir dir_;
};

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

void expect_contains(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST_F(SafeTensorsTest, ReadsTensorsAtAnyAlignment) {
  for (size_t padding = 0; padding < 8; ++padding) {
    const auto file = open(safetensors_text({{"w", f32_tensor({2, 1}, {1.5f, -2})},
                                             {"empty", {"I64", {0, 7}, ""}},
                                             {"scalar", {"BF16", {}, "ab"}},
                                             {"é", {"U8", {1}, "z"}}},
                                            padding));
    ASSERT_TRUE(file.ok()) << file.error().message;
    const SafeTensors& tensors = *file.value();
    EXPECT_EQ(tensors.tensors().size(), 4u);
    const TensorView* w = tensors.find("w");
    ASSERT_NE(w, nullptr);
    EXPECT_EQ(w->dtype, DType::kF32);
    EXPECT_EQ(w->shape, (std::vector<int64_t>{2, 1}));
    EXPECT_EQ(std::string(w->bytes.begin(), w->bytes.end()), testing::raw_bytes<float>({1.5f, -2}));
    EXPECT_EQ(tensors.find("empty")->bytes.size(), 0u);
    EXPECT_TRUE(tensors.find("scalar")->shape.empty());
    EXPECT_EQ(tensors.find("é")->bytes[0], 'z');
    EXPECT_EQ(tensors.find("none"), nullptr);
  }
}

TEST_F(SafeTensorsTest, ReadsEmptyFilesAndSkipsMetadata) {
  const auto file = open(safetensors_text(R"({"__metadata__":{"format":"pt"}})", ""));
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_TRUE(file.value()->tensors().empty());
}

TEST_F(SafeTensorsTest, EmptyTensorMaySharePositionWithNext) {
  EXPECT_TRUE(
      open(
          safetensors_text(
              R"({"z":{"dtype":"U8","shape":[0],"data_offsets":[2,2]},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},
          "y":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
              "ab"))
          .ok());
}

TEST_F(SafeTensorsTest, RefusesEveryTruncation) {
  const std::string whole = safetensors_text({{"w", f32_tensor({3}, {1, 2, 3})}});
  ASSERT_TRUE(open(whole).ok());
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(refusal(whole.substr(0, size)), "accepted") << size;
}

TEST_F(SafeTensorsTest, RefusesHeadersThatLieAboutTheirSize) {
  std::string text = safetensors_text("{}", "");
  for (const uint64_t size : {uint64_t{3}, uint64_t{1} << 40, ~uint64_t{0}, ~uint64_t{0} - 7}) {
    std::memcpy(text.data(), &size, sizeof size);
    expect_contains(refusal(text), "the header claims " + std::to_string(size) + " bytes");
  }
}

TEST_F(SafeTensorsTest, RefusesDataOutsideTheFileOrOfTheWrongSize) {
  const auto one = [&](const std::string& dtype, const std::string& shape,
                       const std::string& offsets) {
    return refusal("{" + entry("a", dtype, shape, offsets) + "}", 8);
  };
  expect_contains(one("U8", "[9]", "[0,9]"), "tensor a: its data (bytes 0 to 9) lies outside");
  expect_contains(one("U8", "[1]", "[18446744073709551615,0]"), "lies outside");
  expect_contains(one("F32", "[3]", "[0,8]"), "needs 12 bytes but the header gives it 8");
  expect_contains(one("F32", "[4611686018427387904,4]", "[0,0]"), "overflows");
  expect_contains(one("U8", "[0,18446744073709551615]", "[0,0]"), "overflows");
}

TEST_F(SafeTensorsTest, RefusesOverlapsGapsAndTrailingData) {
  const auto two = [&](const std::string& first, const std::string& second, size_t data_bytes) {
    return refusal(
        "{" + entry("a", "U8", "[4]", first) + "," + entry("b", "U8", "[4]", second) + "}",
        data_bytes);
  };
  EXPECT_EQ(two("[0,4]", "[4,8]", 8), "accepted");
  expect_contains(two("[0,4]", "[2,6]", 6),
                  "tensor b: its data begins at byte 2, but the one before it ends at byte 4");
  expect_contains(two("[0,4]", "[0,4]", 4),
                  "begins at byte 0, but the one before it ends at byte 4");
  expect_contains(two("[0,4]", "[5,9]", 9), "begins at byte 5");
  expect_contains(two("[2,6]", "[6,10]", 10), "begins at byte 2");
  expect_contains(two("[0,4]", "[4,8]", 10), "2 that belong to no tensor");
}

TEST_F(SafeTensorsTest, RefusesMalformedEntries) {
  for (const char* bad : {"7", "{}", R"({"dtype":"U8","shape":[1]})",
                          R"({"dtype":1,"shape":[1],"data_offsets":[0,1]})",
                          R"({"dtype":"U8","shape":1,"data_offsets":[0,1]})",
                          R"({"dtype":"U8","shape":[-1],"data_offsets":[0,1]})",
                          R"({"dtype":"U8","shape":[1.0],"data_offsets":[0,1]})",
                          R"({"dtype":"U8","shape":[1],"data_offsets":[0]})",
                          R"({"dtype":"U8","shape":[1],"data_offsets":[-1,0]})",
                          R"({"dtype":"U8","shape":[1],"data_offsets":"01"})",
                          R"({"dtype":"Q4","shape":[1],"data_offsets":[0,1]})",
                          R"({"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]})"})
    expect_contains(refusal(std::string(R"({"a":)") + bad + "}", 1), "tensor a: ");
}

TEST_F(SafeTensorsTest, RefusesHeadersThatAreNotPlainJsonObjects) {
  expect_contains(refusal("[]", 0), "not an object");
  expect_contains(refusal("{", 0), "not valid JSON");
  expect_contains(refusal("{\"\xff\":1}", 0), "not valid JSON");
  expect_contains(refusal(std::string(100000, '['), 0), "nests deeper");
  const std::string a = entry("a", "U8", "[1]", "[0,1]");
  expect_contains(refusal("{" + a + "," + a + "}", 1), "has the key \"a\" twice");
}

TEST_F(SafeTensorsTest, LongNamesAreShortenedBetweenCharacters) {
  std::string name = "x";
  for (int i = 0; i < 5000; ++i) name += "é";
  const std::string message = refusal("{\"" + name + "\":{}}", 0);
  EXPECT_LT(message.size(), 500u);
  EXPECT_NO_THROW((void)Json(message).dump());
}

// If the file were mapped, reading pages past its new end would raise SIGBUS.
TEST_F(SafeTensorsTest, ReadValuesSurviveTruncation) {
  const std::string text = safetensors_text({{"w", {"U8", {1 << 16}, std::string(1 << 16, 'x')}}});
  const std::string path = dir_.write("read.safetensors", text);
  const auto file = SafeTensors::read(path, text.size());
  ASSERT_TRUE(file.ok()) << file.error().message;
  std::filesystem::resize_file(path, 0);
  EXPECT_EQ((*file)->path(), path);
  EXPECT_EQ((*file)->find("w")->bytes.back(), 'x');
}

TEST_F(SafeTensorsTest, ReadRefusesFileOverLimit) {
  const std::string text = safetensors_text({{"w", f32_tensor({1}, {1})}});
  const auto file = SafeTensors::read(dir_.write("read.safetensors", text), text.size() - 1);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, ErrorCode::kPayloadTooLarge);
}

TEST(SafeTensorsNames, DTypesAreSpelledAsInFiles) {
  EXPECT_STREQ(dtype_name(DType::kBF16), "BF16");
  EXPECT_STREQ(dtype_name(DType::kBool), "BOOL");
  EXPECT_EQ(dtype_size(DType::kF64), 8u);
  EXPECT_EQ(dtype_size(DType::kF16), 2u);
}

}  // namespace
TEST_F(SafeTensorsTest, ReadsOnlyTheWantedValues) {
  const std::string path =
      dir_.write("x.safetensors", safetensors_text({{"a", {"U8", {2}, "aA"}},
                                                    {"b", {"U8", {3}, "bbB"}},
                                                    {"c", {"U8", {1}, "c"}},
                                                    {"d", {"U8", {2}, "dD"}},
                                                    {"none", {"I64", {0, 7}, ""}}}));
  const auto text = [](const TensorView& view) {
    return std::string(view.bytes.begin(), view.bytes.end());
  };
  for (const std::string wanted : {"", "a", "bc", "ad", "abcd"}) {
    const auto file = SafeTensors::read(path, 1000, [&](const std::string& name) {
      return name == "none" || wanted.find(name) != wanted.npos;
    });
    ASSERT_TRUE(file.ok()) << file.error().message;
    const SafeTensors& tensors = **file;
    EXPECT_EQ(tensors.tensors().size(), 5u);
    for (const auto& [name, view] : tensors.tensors())
      EXPECT_EQ(text(view), wanted.find(name) == wanted.npos
                                ? ""
                                : text(*SafeTensors::open(path).value()->find(name)));
    EXPECT_EQ(byte_size(*tensors.find("b")), 3u);
    EXPECT_EQ(byte_size(*tensors.find("none")), 0u);
  }
}

TEST_F(SafeTensorsTest, ReportsGitLfsPointer) {
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
  expect_contains(refusal(pointer), "is a Git LFS pointer, not the file: run git lfs pull");
  const auto read = SafeTensors::read(dir_.file("x.safetensors"), 1000);
  ASSERT_FALSE(read.ok());
  expect_contains(read.error().message, "Git LFS pointer");
  expect_contains(refusal("versions"), "not a safetensors file");
}

TEST_F(SafeTensorsTest, ChangedFileHasNewIdentity) {
  const auto identity = [&](const std::string& content) {
    dir_.write("new", safetensors_text({{"a", {"U8", {2}, content}}}));
    std::filesystem::rename(dir_.file("new"), dir_.file("x"));
    const FileIdentity id = SafeTensors::read(dir_.file("x"), 1000).value()->identity();
    return std::tuple(id.device, id.inode, id.size, id.modified_ns);
  };
  const auto first = identity("aa");
  const FileIdentity again = SafeTensors::read(dir_.file("x"), 1000).value()->identity();
  EXPECT_EQ(first, std::tuple(again.device, again.inode, again.size, again.modified_ns));
  EXPECT_NE(first, identity("bb"));
}

}  // namespace valora
