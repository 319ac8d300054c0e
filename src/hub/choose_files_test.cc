#include "hub/choose_files.h"

#include <gmock/gmock.h>

namespace valora::hub {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const HubName kRepository{.owner = "o", .name = "n"};

Listing listing(const std::vector<std::string>& names) {
  Listing out{std::string(40, 'c'), {}};
  for (const std::string& name : names) out.files.push_back({name, 1, std::string(40, 'a')});
  return out;
}

std::vector<std::string> chosen(const std::vector<std::string>& names, Kind kind,
                                const HubName& name = kRepository) {
  const auto files = choose_files(listing(names), kind, name);
  std::vector<std::string> out;
  if (!files.ok()) return {files.error().message};
  for (const RemoteFile& file : files->files) out.push_back(file.name);
  return out;
}

std::string reason(const std::vector<std::string>& names, Kind kind,
                   const HubName& name = kRepository) {
  const auto files = choose_files(listing(names), kind, name);
  return files.ok() ? "fine" : files.error().message;
}

TEST(ChooseFiles, ModelHasSettingsAndOneFormOfItsWeights) {
  EXPECT_THAT(
      chosen({".gitattributes", "README.md", "config.json", "merges.txt", "chat_template.jinja",
              "model.onnx", "model.safetensors", "modeling_x.py", "pytorch_model.bin",
              "pytorch_model.bin.index.json", "tokenizer.model", "qwen.tiktoken", "tf_model.h5",
              "trainer_state.json", "model-Q4.gguf", "consolidated.safetensors"},
             Kind::kModel),
      ElementsAre("config.json", "merges.txt", "chat_template.jinja", "tokenizer.model",
                  "qwen.tiktoken", "model.safetensors"));
}

TEST(ChooseFiles, IndexNamesTheShards) {
  const Listing files = listing({"config.json", "model.safetensors.index.json",
                                 "model-1.safetensors", "model-2.safetensors", "x.bin"});
  const auto first = choose_files(files, Kind::kAny, kRepository);
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(first->indexed);
  EXPECT_EQ(first->files.back().name, kWeightsIndex);
  const auto shards = shards_of(files, {"model-1.safetensors", "model-2.safetensors"}, kRepository);
  ASSERT_TRUE(shards.ok());
  EXPECT_EQ(shards->size(), 2u);
  EXPECT_FALSE(shards_of(files, {"model-3.safetensors"}, kRepository).ok());
  EXPECT_FALSE(shards_of(files, {"x.bin"}, kRepository).ok());
}

TEST(ChooseFiles, AdapterIsTakenWithoutItsBase) {
  const std::vector<std::string> files = {"adapter_config.json", "adapter_model.safetensors",
                                          "optimizer.pt", "valora.json"};
  for (const Kind kind : {Kind::kAdapter, Kind::kAny})
    EXPECT_THAT(chosen(files, kind),
                ElementsAre("adapter_config.json", "valora.json", "adapter_model.safetensors"));
  EXPECT_THAT(
      chosen({"adapter_config.json", "0000100_adapters.safetensors", "adapters.safetensors"},
             Kind::kAdapter),
      ElementsAre("adapter_config.json", "adapters.safetensors"));
  EXPECT_THAT(reason(files, Kind::kModel), HasSubstr("is an adapter: give its base model"));
  EXPECT_THAT(reason({"config.json", "model.safetensors"}, Kind::kAdapter),
              HasSubstr("no adapter_config.json, but the config.json of a model"));
  EXPECT_THAT(reason({"adapter_config.json", "adapter_model.bin"}, Kind::kAdapter),
              HasSubstr("pickle"));
}

TEST(ChooseFiles, GgufFileIsChosenByName) {
  const std::vector<std::string> files = {"README.md", "a-Q4.gguf", "a-Q8.gguf"};
  EXPECT_THAT(reason(files, Kind::kModel), HasSubstr("2 GGUF files: give one of them, such as "
                                                     "o/n/a-Q4.gguf"));
  HubName name = kRepository;
  name.file = "a-Q8.gguf";
  EXPECT_THAT(chosen(files, Kind::kModel, name), ElementsAre("a-Q8.gguf"));
  name.file = "b.gguf";
  EXPECT_THAT(reason(files, Kind::kAny, name), HasSubstr("has no file b.gguf"));
  EXPECT_THAT(chosen({"README.md", "a.gguf"}, Kind::kModel), ElementsAre("a.gguf"));
}

TEST(ChooseFiles, GgufFileComesWithItsPartsAndItsVisionPart) {
  const std::vector<std::string> split = {"a-00001-of-00002.gguf", "a-00002-of-00002.gguf"};
  EXPECT_THAT(chosen(split, Kind::kModel), ElementsAre(split[0], split[1]));
  EXPECT_THAT(reason({split[0]}, Kind::kModel), HasSubstr("a-00002-of-00002.gguf is missing"));
  const std::vector<std::string> pair = {"a-Q4.gguf", "a-Q8.gguf", "mmproj-BF16.gguf",
                                         "mmproj-F16.gguf"};
  HubName name = kRepository;
  name.file = "a-Q8.gguf";
  EXPECT_THAT(chosen(pair, Kind::kModel, name), ElementsAre("a-Q8.gguf", "mmproj-F16.gguf"));
  name.file = "mmproj-F16.gguf";
  EXPECT_THAT(chosen(pair, Kind::kModel, name), ElementsAre("mmproj-F16.gguf"));
  EXPECT_THAT(reason({"mmproj-F16.gguf"}, Kind::kModel), HasSubstr("vision part of a model alone"));
}

TEST(ChooseFiles, NothingThatIsReadIsSaid) {
  EXPECT_THAT(reason({"config.json", "pytorch_model.bin"}, Kind::kModel), HasSubstr("pickles"));
  EXPECT_THAT(reason({"README.md"}, Kind::kModel), HasSubstr("neither a model"));
}

}  // namespace
}  // namespace valora::hub
