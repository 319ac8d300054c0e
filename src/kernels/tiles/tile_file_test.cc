#include "kernels/tiles/tile_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/testing/temp_dir.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/tiles/find_tiles.h"

namespace valora::kernels {
namespace {

Hardware some_hardware() {
  return {.name = "Some \"CPU\" 1",
          .vendor = "Maker",
          .family = 25,
          .model = 17,
          .isa = "avx2",
          .l1 = 32768,
          .l2 = 1 << 20};
}

TileFile some_file() {
  std::vector<TileEntry> entries;
  for (const ProductKind kind : {ProductKind::kDense, ProductKind::kShrink, ProductKind::kExpand})
    for (const bool float32 : {false, true})
      for (const Isa isa : {Isa::kAvx512Bf16, Isa::kAvx512, Isa::kAvx2, Isa::kPortable})
        for (const int64_t m : {1, 16, 2048})
          entries.push_back({TileKey::of({kind, float32, isa, m, 896, 64}), CpuTile{3, 1, 1}});
  return {some_hardware(), TileTable(entries)};
}

std::string with(const std::string& from, const std::string& to) {
  std::string text =
      R"({"version": 1, "hardware": {"cpu": "c", "vendor": "v", "family": 1, "model": 2, "isa": "avx2", "l1": 3, "l2": 4},
    "tiles": [{"kind": "dense", "device": "cpu", "dtype": "bfloat16", "isa": "avx2", "n": 8, "k": 9, "tokens": [[1, 1, 4, 1], [2, 2, 2, 1]]}]})";
  if (from.empty()) return text;
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(TileFiles, RoundTrip) {
  valora::testing::TempDir dir;
  const std::string path = dir.path() + "/deep/tiles.json";
  const TileFile file = some_file();
  ASSERT_TRUE(write_tile_file(path, file).ok());
  const auto read = read_tile_file(path);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->hardware, file.hardware);
  ASSERT_EQ(read->table.size(), file.table.size());
  for (const TileEntry& entry : file.table.entries())
    EXPECT_EQ(read->table.exact(entry.key), entry.tile);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path() + "/deep"), {}), 1)
      << "no drafts stay";
}

TEST(TileFiles, GpuFilesHoldOnlyGpuTiles) {
  const ProductShape shape{ProductKind::kLongShrink, false, CudaArch::kSm90, 16, 32, 4096};
  const Tile tile = CudaTile{16, 8, 2, 4};
  const Hardware gpu = gpu_hardware("Some GPU", 90, 227 << 10, 50 << 20);
  const TileTable table({TileEntry{TileKey::of(shape), tile}});
  const std::string text = tile_file_text({gpu, table});
  EXPECT_NE(text.find(R"("device":"cuda","dtype":"bfloat16","isa":"sm_90")"), text.npos) << text;
  EXPECT_NE(text.find("[[16,16,8,2,4]]"), text.npos) << text;
  const auto read = parse_tile_file(text, "t.json");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->hardware, gpu);
  EXPECT_FALSE(read->hardware.same_kind(some_hardware()));
  EXPECT_EQ(read->table.exact(TileKey::of(shape)), tile);
  const auto refused = parse_tile_file(tile_file_text({some_hardware(), table}), "t.json");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("\"device\" is not that of the hardware"),
            std::string::npos)
      << refused.error().message;
}

TEST(TileFiles, ReportWriteErrors) {
  valora::testing::TempDir dir;
  std::ofstream(dir.path() + "/file") << "x";
  EXPECT_FALSE(write_tile_file(dir.path() + "/file/tiles.json", some_file()).ok());
}

TEST(TileFiles, ErrorsNameFault) {
  ASSERT_TRUE(parse_tile_file(with("", ""), "t.json").ok());
  const std::pair<std::pair<const char*, const char*>, const char*> faults[] = {
      {{"\"version\": 1", "\"version\": 2"}, "t.json: \"version\" must be 1"},
      {{"\"version\": 1,", ""}, "t.json: \"version\" is missing"},
      {{"\"version\": 1", "\"version\": 1, \"more\": 1"}, "t.json has the unknown field \"more\""},
      {{"\"tiles\": [{", "\"tiles\": [3, {"}, "t.json: tiles[0] must be an object"},
      {{"\"l1\": 3", "\"l1\": -3"}, "t.json: hardware: \"l1\" must be 0 to"},
      {{"\"cpu\": \"c\"", "\"cpu\": 3"}, "t.json: hardware: \"cpu\" must be a string"},
      {{"\"dense\"", "\"thick\""},
       "t.json: tiles[0]: \"kind\" must be one of dense, shrink, expand, long_shrink, long_expand, "
       "merge"},
      {{"\"bfloat16\"", "\"int8\""}, "t.json: tiles[0]: \"dtype\" must be one of"},
      {{"\"n\": 8", "\"n\": 0"}, "t.json: tiles[0]: \"n\" must be 1 to"},
      {{"\"k\": 9, ", ""}, "t.json: tiles[0]: \"k\" is missing"},
      {{"[[1, 1, 4, 1], [2, 2, 2, 1]]", "7"}, "t.json: tiles[0]: \"tokens\" must be an array"},
      {{"[2, 2, 2, 1]", "[2, 2, 2]"},
       "t.json: tiles[0].tokens[1] must be [tokens, rows, panels, chains]"},
      {{"[2, 2, 2, 1]", "[2, 2, -2, 1]"},
       "t.json: tiles[0].tokens[1][2] must be an integer from 1"},
      {{"[2, 2, 2, 1]", "[2, 3, 2, 1]"},
       "t.json: tiles[0].tokens[1]: avx2 has no tile of 3 rows, 2 panels and 1 chains"},
      {{"\"cpu\", \"dtype\"", "\"tpu\", \"dtype\""},
       "t.json: tiles[0]: \"device\" must be one of cpu, cuda"},
      {{"\"cpu\", \"dtype\"", "\"cuda\", \"dtype\""},
       "t.json: tiles[0]: \"isa\" must be one of sm_80, sm_86, sm_89, sm_90, sm_120"},
      {{"[2, 2, 2, 1]", "[2, 257, 1, 1]"}, "has no tile of 257 rows"},
      {{"[2, 2, 2, 1]", "[17, 2, 2, 1]"}, "17 tokens are in the bucket of 16"},
      {{"[2, 2, 2, 1]", "[1, 2, 2, 1]"}, "t.json: a shape occurs twice"},
      {{"\"n\": 8", "\"n\": 8, \"n\": 8"}, "key \"n\" twice"},
      {{"]}]}", ""}, "t.json is not valid JSON"},
  };
  for (const auto& [change, message] : faults) {
    const auto file = parse_tile_file(with(change.first, change.second), "t.json");
    ASSERT_FALSE(file.ok()) << change.second;
    EXPECT_NE(file.error().message.find(message), std::string::npos) << file.error().message;
  }
  EXPECT_FALSE(parse_tile_file(std::string(5 << 20, ' '), "t.json").ok());
  EXPECT_FALSE(parse_tile_file("[]", "t.json").ok());
}

class FindingTiles : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const TileFile& file) {
    EXPECT_TRUE(write_tile_file(dir_.path() + "/" + name, file).ok());
    return dir_.path() + "/" + name;
  }
  valora::testing::TempDir dir_;
  const std::string shipped_text_ = tile_file_text(some_file());
  const ShippedTiles shipped_{"ours", shipped_text_.c_str()};
};

TEST_F(FindingTiles, PrefersNamedThenUsersThenShipped) {
  const std::string own = write("own.json", some_file()), named = write("named.json", some_file());
  const auto source = [&](const std::string& name, const std::string& path) {
    const auto found = find_tiles(name, path, some_hardware(), {&shipped_, 1});
    EXPECT_TRUE(found.ok());
    return found->source;
  };
  EXPECT_EQ(source(named, own), named);
  EXPECT_EQ(source("", own), own);
  EXPECT_EQ(source("", dir_.path() + "/none.json"), "shipped: ours");
  EXPECT_EQ(source("", ""), "shipped: ours");
  const auto none = find_tiles("", "", some_hardware(), {});
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->source, "");
  EXPECT_EQ(none->table->size(), 0u);
}

TEST_F(FindingTiles, SkipsOtherHardware) {
  TileFile foreign = some_file();
  foreign.hardware.model = 18;
  const std::string path = write("foreign.json", foreign);
  const auto found = find_tiles(path, path, some_hardware(), {&shipped_, 1});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->source, "shipped: ours");
  // Shipped tables apply to all hardware of the same kind, whatever its model name.
  Hardware cousin = some_hardware();
  cousin.name = "Another name";
  EXPECT_EQ(find_tiles("", "", cousin, {&shipped_, 1})->source, "shipped: ours");
  cousin.l2 *= 2;
  EXPECT_EQ(find_tiles("", "", cousin, {&shipped_, 1})->source, "");
}

TEST_F(FindingTiles, BrokenFileIsErrorOnlyIfNamed) {
  const std::string path = dir_.path() + "/broken.json";
  std::ofstream(path) << "{";
  EXPECT_FALSE(find_tiles(path, "", some_hardware(), {&shipped_, 1}).ok());
  EXPECT_FALSE(find_tiles(dir_.path() + "/missing.json", "", some_hardware(), {&shipped_, 1}).ok());
  const auto found = find_tiles("", path, some_hardware(), {&shipped_, 1});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->source, "shipped: ours");
}

TEST(ShippedTables, AreReadable) {
  for (const ShippedTiles& tiles : shipped_tiles()) {
    const auto file = parse_tile_file(tiles.text, tiles.name);
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_GT(file->table.size(), 0u);
  }
}

TEST(Fingerprints, ParseSystemFiles) {
  const std::string info =
      "processor\t: 0\nvendor_id\t: Maker\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: Some "
      "CPU\nflags\t\t:\n\nmodel name\t: Other\n";
  const Hardware h = parse_hardware(info, "32K\n", "1M\n");
  EXPECT_EQ(h.name, "Some CPU");
  EXPECT_EQ(h.vendor, "Maker");
  EXPECT_EQ(h.family, 25);
  EXPECT_EQ(h.model, 17);
  EXPECT_EQ(h.l1, 32 << 10);
  EXPECT_EQ(h.l2, 1 << 20);
  EXPECT_EQ(h.isa, isa_name(supported_isas().front()));
  Hardware other = h;
  EXPECT_EQ(other.digest(), h.digest());
  other.model = 18;
  EXPECT_NE(other.digest(), h.digest());
  EXPECT_EQ(parse_hardware("", "", "").l1, 0);
  const Hardware arm = parse_hardware(
      "CPU implementer\t: 0x41\nCPU variant\t: 0x4\nCPU part\t: 0xd0b\n", "64K\n", "512K\n");
  EXPECT_EQ(arm.vendor, "implementer 0x41");
  EXPECT_EQ(arm.family, 0xd0b);
  EXPECT_EQ(arm.model, 4);
  EXPECT_NE(arm.name, "");
  EXPECT_EQ(this_hardware().isa, h.isa);
}

}  // namespace
}  // namespace valora::kernels
