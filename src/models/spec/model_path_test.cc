#include "models/spec/model_path.h"

#include <gmock/gmock.h>

#include "base/testing/temp_dir.h"

namespace valora::models {
namespace {

using ::testing::HasSubstr;
using valora::testing::TempDir;

std::string reason(const std::string& path) {
  const Status status = check_model_folder(path);
  return status.ok() ? "fine" : status.error().message;
}

TEST(ModelPath, ErrorNamesFolderContentsAndRemedy) {
  const TempDir dir;
  EXPECT_THAT(reason("Qwen/Qwen2-VL-2B-Instruct"),
              HasSubstr("run valora inspect Qwen/Qwen2-VL-2B-Instruct and give the folder"));
  EXPECT_EQ(reason("./Qwen/Qwen2"), "./Qwen/Qwen2 does not exist");
  EXPECT_EQ(reason(dir.file("no/such")), dir.file("no/such") + " does not exist");
  EXPECT_EQ(reason(dir.write("model.bin", "GGUF\3")), "fine");
  EXPECT_THAT(reason(dir.write("model", "PK\x03\x04zzz")), HasSubstr("is an archive: unpack"));
  EXPECT_THAT(reason(dir.write("model.tar.gz", "")), HasSubstr("is an archive: unpack"));
  EXPECT_THAT(reason(dir.write("model.safetensors", "x")), HasSubstr("a file of weights"));
  EXPECT_THAT(reason(dir.write("notes.txt", "")), HasSubstr("is a file: give the folder"));
  const TempDir folder;
  EXPECT_THAT(reason(folder.path()), HasSubstr("neither a model"));
  folder.write("model-q4.gguf", "");
  EXPECT_EQ(reason(folder.path()), "fine");
  folder.write("model-q8.gguf", "");
  EXPECT_THAT(reason(folder.path()), HasSubstr("has no config.json, but GGUF files: give one of"));
  folder.write("adapter_config.json", R"({"base_model_name_or_path": "org/base"})");
  EXPECT_THAT(
      reason(folder.path()),
      HasSubstr("is an adapter: give the folder of its base model (org/base) as the model"));
  folder.write("config.json", "{}");
  EXPECT_EQ(reason(folder.path()), "fine");
}

TEST(ModelPath, LayoutsOfModelMakersAreNamed) {
  const TempDir meta;
  meta.write("params.json", "{}");
  meta.write("consolidated.00.pth", "");
  EXPECT_THAT(reason(meta.path()), HasSubstr("convert Meta's layout"));
  for (const char* file :
       {"tekken.json", "consolidated.safetensors", "consolidated-00001-of-00002.safetensors"}) {
    const TempDir mistral;
    mistral.write("params.json", "{}");
    mistral.write(file, "");
    EXPECT_THAT(reason(mistral.path()), HasSubstr("in Mistral's own layout")) << file;
  }
}

}  // namespace
}  // namespace valora::models
