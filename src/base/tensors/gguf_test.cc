#include "base/tensors/gguf.h"
#include "base/tensors/gguf_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/gguf_text.h"
#include "base/testing/temp_dir.h"

namespace valora {
namespace {

using ::testing::ElementsAre;
using testing::gguf_bytes;
using testing::gguf_text;
using testing::gguf_u32;
using testing::GgufRawTensor;
using ::testing::HasSubstr;

std::string gguf_refusal(const std::string& text) {
  const auto file = Gguf::from_bytes(text, "x.gguf");
  return file.ok() ? "accepted" : file.error().message;
}

const GgufRawTensor kTwoRows{"w", {3, 2}, 0, std::string(24, 'a')};

TEST(GgufTest, ReadsMetadataOfEveryKind) {
  const std::string text = gguf_text(
      {testing::gguf_u32("n", 7), testing::gguf_f32("x", 0.5f), testing::gguf_flag("yes", true),
       testing::gguf_string("name", "é"), testing::gguf_entry("neg", 1, "\xff"),
       testing::gguf_entry("wide", 10, gguf_bytes(uint64_t{1} << 40)),
       testing::gguf_list<std::string>("words", 8, {"a", "", "\xff"}),
       testing::gguf_list<int32_t>("types", 5, {1, -3}),
       testing::gguf_list<float>("scores", 6, {0.25f}), testing::gguf_list<float>("none", 6, {})});
  for (const uint32_t version : {2u, 3u}) {
    std::string bytes = text;
    bytes.replace(4, 4, gguf_bytes(version));
    const auto file = Gguf::from_bytes(bytes, "x.gguf");
    ASSERT_TRUE(file.ok()) << file.error().message;
    const GgufMetadata& data = (*file)->metadata();
    EXPECT_EQ(*data.integer("n"), 7);
    EXPECT_EQ(*data.integer("neg"), -1);
    EXPECT_EQ(*data.integer("wide"), int64_t{1} << 40);
    EXPECT_EQ(*data.number("x"), 0.5);
    EXPECT_EQ(*data.number("n"), 7);
    EXPECT_TRUE(*data.flag("yes", false));
    EXPECT_TRUE(*data.flag("absent", true));
    EXPECT_EQ(*data.text("name"), "é");
    EXPECT_EQ(*data.text("absent", "d"), "d");
    EXPECT_THAT(*data.texts("words"), ElementsAre("a", "", "\xff"));
    EXPECT_THAT(*data.numbers("types"), ElementsAre(1, -3));
    EXPECT_THAT(*data.numbers("scores"), ElementsAre(0.25));
    EXPECT_TRUE(data.numbers("none")->empty());
    EXPECT_TRUE(data.texts("absent")->empty());
    EXPECT_EQ(data.integer("absent").error().message, "x.gguf: \"absent\" is missing");
    EXPECT_EQ(data.integer("name").error().message, "x.gguf: \"name\" must be an integer");
    EXPECT_THAT(data.texts("types").error().message, HasSubstr("must be a list of strings"));
    EXPECT_THAT(data.numbers("words").error().message, HasSubstr("must be a list of numbers"));
  }
}

TEST(GgufTest, ReadsTensorsInRowMajorOrder) {
  const std::string text = gguf_text(
      {},
      {kTwoRows, {"q", {32, 2}, 8, std::string(68, 'b')}, {"k", {256}, 12, std::string(144, 'c')}});
  const auto file = Gguf::from_bytes(text, "x.gguf");
  ASSERT_TRUE(file.ok()) << file.error().message;
  ASSERT_EQ((*file)->tensors().size(), 3u);
  const GgufTensor& q = *(*file)->find("q");
  EXPECT_EQ(q.type, GgufType::kQ8_0);
  EXPECT_THAT(q.shape, ElementsAre(2, 32));
  EXPECT_EQ(std::string(q.bytes.begin(), q.bytes.end()), std::string(68, 'b'));
  EXPECT_EQ(text.substr(q.begin, 68), std::string(68, 'b'));
  EXPECT_THAT((*file)->find("w")->shape, ElementsAre(2, 3));
  EXPECT_STREQ(block_of((*file)->find("k")->type).name, "Q4_K");
  EXPECT_EQ((*file)->find("absent"), nullptr);
}

TEST(GgufTest, RefusesOtherFormats) {
  EXPECT_EQ(gguf_refusal(""), "x.gguf is not a GGUF file");
  EXPECT_EQ(gguf_refusal("GGUF"), "x.gguf: the header ends beyond the file's 4 bytes (truncated?)");
  EXPECT_EQ(gguf_refusal("GGUF" + gguf_bytes(uint32_t{1})),
            "x.gguf is a GGUF file of version 1, only 2 and 3 are supported");
  EXPECT_EQ(gguf_refusal("GGUF" + gguf_bytes(uint32_t{3} << 24)),
            "x.gguf is a GGUF file in big-endian order, which is not supported");
  EXPECT_THAT(gguf_refusal("version https://git-lfs.github.com/spec/v1\n"),
              HasSubstr("git lfs pull"));
}

TEST(GgufTest, RefusesHostileMetadata) {
  using namespace testing;
  const auto header = [](uint64_t tensors, uint64_t keys) {
    return "GGUF" + gguf_bytes(uint32_t{3}) + gguf_bytes(tensors) + gguf_bytes(keys);
  };
  EXPECT_THAT(gguf_refusal(header(0, UINT64_MAX)), HasSubstr("claims 18446744073709551615 keys"));
  EXPECT_THAT(gguf_refusal(header(UINT64_MAX, 0)),
              HasSubstr("claims 18446744073709551615 tensors"));
  EXPECT_THAT(gguf_refusal(header(0, 1) + gguf_bytes(UINT64_MAX) + "12345678"),
              HasSubstr("a key of the metadata ends beyond"));
  EXPECT_EQ(gguf_refusal(gguf_text({gguf_u32("a", 1), gguf_u32("a", 1)})),
            "x.gguf: \"a\" occurs twice");
  EXPECT_EQ(gguf_refusal(gguf_text({gguf_entry("a", 13, "12345678")})),
            "x.gguf: \"a\" has the unknown type 13");
  EXPECT_THAT(gguf_refusal(gguf_text({gguf_entry("a", 10, gguf_bytes(UINT64_MAX))})),
              HasSubstr("\"a\" is out of range"));
  EXPECT_THAT(gguf_refusal(gguf_text(
                  {gguf_entry("a", 9, gguf_bytes(uint32_t{9}) + gguf_bytes(uint64_t{0}))})),
              HasSubstr("\"a\" is a list of the type 9"));
  for (const uint32_t type : {0u, 5u, 8u, 12u})
    EXPECT_THAT(
        gguf_refusal(header(0, 1) +
                     gguf_entry("a", 9, gguf_bytes(type) + gguf_bytes(UINT64_MAX / 2) + "ab")),
        HasSubstr("\"a\" ends beyond the file's"));
  const uint64_t wraps_to_0 = uint64_t{1} << 62;  // four bytes each
  EXPECT_THAT(
      gguf_refusal(header(0, 1) + gguf_entry("a", 9, gguf_bytes(4u) + gguf_bytes(wraps_to_0))),
      HasSubstr("\"a\" ends beyond the file's"));
  for (const uint32_t alignment : {0u, 24u, 1u << 17})
    EXPECT_THAT(gguf_refusal(gguf_text({gguf_u32("general.alignment", alignment)})),
                HasSubstr("\"general.alignment\" must be a power of two"));
  EXPECT_THAT(gguf_refusal(gguf_text({gguf_string("general.alignment", "32")})),
              HasSubstr("must be an integer"));
}

TEST(GgufTest, RefusesHostileTensors) {
  const auto one = [](GgufRawTensor tensor) {
    return gguf_refusal(gguf_text({}, {std::move(tensor)}));
  };
  EXPECT_EQ(one({"w", {4}, 0, std::string(15, 'a')}), "accepted");  // padded to the alignment
  EXPECT_THAT(one({"w", {9}, 0, std::string(32, 'a')}),
              HasSubstr("tensor w ends beyond the file's"));
  EXPECT_EQ(one({"w", {}, 0, ""}), "x.gguf: tensor w has 0 dimensions");
  EXPECT_EQ(one({"w", {1, 1, 1, 1, 1}, 0, "abcd"}), "x.gguf: tensor w has 5 dimensions");
  EXPECT_THAT(one({"w", {uint64_t{1} << 40, uint64_t{1} << 40}, 0, ""}), HasSubstr("overflows"));
  EXPECT_THAT(one({"w", {UINT64_MAX}, 0, ""}), HasSubstr("overflows"));
  EXPECT_THAT(one({"w", {uint64_t{1} << 62}, 0, ""}), HasSubstr("overflows"));
  EXPECT_EQ(one({"w", {256}, 16, std::string(66, 'a')}),
            "x.gguf: tensor w has the type IQ2_XXS, which is not supported");
  EXPECT_EQ(one({"w", {256}, 99, ""}), "x.gguf: tensor w has the type 99, which is unknown");
  EXPECT_EQ(one({"w", {48}, 8, std::string(68, 'a')}),
            "x.gguf: tensor w has rows of 48 values, which blocks of Q8_0 (32) do not divide");
  EXPECT_EQ(gguf_refusal(gguf_text({}, {kTwoRows, kTwoRows})), "x.gguf: tensor w occurs twice");
  EXPECT_THAT(one({"\xff", {1}, 0, "abcd"}), HasSubstr("the name of a tensor is not UTF-8"));

  std::string moved = gguf_text({}, {kTwoRows, {"v", {1}, 0, "abcd"}});
  const size_t offset = moved.find(gguf_bytes(uint64_t{32}));
  ASSERT_NE(offset, std::string::npos);
  moved.replace(offset, 8, gguf_bytes(uint64_t{16}));
  EXPECT_EQ(gguf_refusal(moved),
            "x.gguf: tensor v begins at byte 16 of the data, but the one before it ends at 32");
}

// Every prefix of a file is either refused or contains all of its tensors.
TEST(GgufTest, RefusesEveryTruncation) {
  const std::string text =
      gguf_text({testing::gguf_list<std::string>("words", 8, {"a", "bc"})}, {kTwoRows});
  for (size_t size = 0; size + 8 < text.size(); ++size)
    EXPECT_FALSE(Gguf::from_bytes(text.substr(0, size), "x").ok()) << size;
}

TEST(GgufTest, FindsTheFileOfAModel) {
  testing::TempDir dir;
  EXPECT_EQ(find_gguf(dir.path() + "/absent.gguf"), std::nullopt);
  EXPECT_EQ(find_gguf(dir.path()), std::nullopt);
  const std::string file = dir.write("m.gguf", "");
  EXPECT_EQ(find_gguf(file), file);
  EXPECT_EQ(find_gguf(dir.path()), file);
  EXPECT_EQ(find_gguf(dir.write("blob", "GGUF....")), dir.path() + "/blob");
  EXPECT_EQ(find_gguf(dir.write("README.md", "GG")), std::nullopt);
  dir.write("adapter_config.json", "{}");
  EXPECT_EQ(find_gguf(dir.path()), std::nullopt);

  testing::TempDir parts;
  const std::string first = parts.write("m-00001-of-00002.gguf", "");
  parts.write("m-00002-of-00002.gguf", "");
  parts.write("MMPROJ-m-F16.gguf", "");
  EXPECT_EQ(find_gguf(parts.path()), first);

  testing::TempDir two;
  two.write("a.gguf", "");
  two.write("b.gguf", "");
  EXPECT_EQ(find_gguf(two.path()), std::nullopt);
}

TEST(GgufTest, ReadsThePartsOfASplitModel) {
  testing::TempDir dir;
  const auto part = [](uint32_t number, const char* tensor) {
    return gguf_text({gguf_u32("split.no", number), gguf_u32("split.count", 2)},
                     {{tensor, {1}, 0, "abcd"}});
  };
  const std::string first = dir.write("m-00001-of-00002.gguf", part(0, "a"));
  EXPECT_THAT(Gguf::open(first).error().message,
              HasSubstr("m-00002-of-00002.gguf is missing, one of the 2 parts"));
  const std::string second = dir.write("m-00002-of-00002.gguf", part(1, "b"));
  const auto whole = Gguf::open(first);
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  EXPECT_EQ((*whole)->parts(), (std::vector<std::string>{first, second}));
  ASSERT_EQ((*whole)->tensors().size(), 2u);
  EXPECT_EQ((*whole)->find("b")->part, 1u);
  EXPECT_THAT(Gguf::open(second).error().message, HasSubstr("is part 2 of 2 of a model"));
  dir.write("m-00002-of-00002.gguf", part(1, "a"));
  EXPECT_THAT(Gguf::open(first).error().message, HasSubstr("tensor a is in another part, too"));
  dir.write("m-00002-of-00002.gguf", part(0, "b"));
  EXPECT_THAT(Gguf::open(first).error().message, HasSubstr("\"split.no\" must be 1"));
  EXPECT_THAT(Gguf::open(dir.write("m.gguf", part(0, "a"))).error().message,
              HasSubstr("its name does not end in -00001-of-00002.gguf"));
}

TEST(GgufTest, FindsTheVisionPart) {
  testing::TempDir dir;
  const std::string model = dir.write("m-Q4_K_M.gguf", "");
  EXPECT_EQ(find_mmproj(model, "").value(), "");
  dir.write("mmproj-m-BF16.gguf", "");
  EXPECT_EQ(find_mmproj(model, "").value(), dir.path() + "/mmproj-m-BF16.gguf");
  const std::string half = dir.write("m-mmproj-f16.gguf", "");
  EXPECT_EQ(find_mmproj(model, "").value(), half) << "F16 before BF16";
  EXPECT_EQ(find_mmproj(model, "none").value(), "");
  EXPECT_EQ(find_mmproj(model, model).value(), model);
  EXPECT_THAT(find_mmproj(model, "absent").error().message, HasSubstr("absent does not exist"));
  dir.write("mmproj-other-F16.gguf", "");
  EXPECT_THAT(find_mmproj(model, "").error().message,
              HasSubstr("is next to several files that may be its vision part, such as "
                        "m-mmproj-f16.gguf: name one with --mmproj FILE"));
}

}  // namespace
}  // namespace valora
