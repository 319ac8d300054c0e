// Reads a GGUF file. Tensors must be inside the file, and metadata must be readable, also as a
// configuration.
#include "base/tensors/gguf.h"

#include "check.h"
#include "models/spec/gguf_config.h"
#include "models/spec/gguf_model.h"
#include "models/spec/gguf_vision.h"
#include "models/spec/testing/gguf_parts.h"

using namespace valora;

namespace {

// The file as the vision part of small language models.
void read_vision(const std::shared_ptr<const Gguf>& file) {
  for (const char* architecture : {"llama", "gemma3", "qwen2vl", "qwen3vl"}) {
    std::vector<std::string> more{
        testing::gguf_u32(std::string(architecture) + ".attention.sliding_window",
                          architecture == std::string_view("gemma3") ? 4 : 0),
        testing::gguf_list<std::string>("words", 8, {"a"})};
    if (std::string_view(architecture).ends_with("vl"))
      more.push_back(testing::gguf_list<int32_t>(
          std::string(architecture) + ".rope.dimension_sections", 5, {2, 1, 1, 0}));
    const auto language = Gguf::from_bytes(
        testing::gguf_text(models::testing::gguf_settings(architecture, more),
                           {models::testing::integer_rows("token_embd.weight", 2)}),
        "language");
    FUZZ_CHECK(language.ok());
    const models::GgufModel model{*language, file};
    const auto config = models::gguf_model_config(model);
    FUZZ_CHECK(config.ok() || !config.error().message.empty());
    if (config.ok()) (void)models::gguf_image_processor(model, *config).ok();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file =
      Gguf::from_bytes(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!file.ok()) {
    FUZZ_CHECK(!file.error().message.empty());
    return 0;
  }
  const uint8_t* first = nullptr;  // of the file
  size_t end = 0;
  for (const GgufTensor& tensor : (*file)->tensors()) {
    const GgufBlock& block = block_of(tensor.type);
    uint64_t values = 1;
    for (const int64_t n : tensor.shape) values *= static_cast<uint64_t>(n);
    FUZZ_CHECK(values / static_cast<uint64_t>(block.values) * block.bytes == tensor.bytes.size());
    FUZZ_CHECK(tensor.begin >= end && tensor.begin + tensor.bytes.size() <= size);
    if (!first) first = tensor.bytes.data() - tensor.begin;
    FUZZ_CHECK(tensor.bytes.data() == first + tensor.begin);
    FUZZ_CHECK((*file)->find(tensor.name) == &tensor);
    end = tensor.begin + tensor.bytes.size();
  }
  const auto config = models::gguf_config(**file);
  (void)Json(config.ok() ? config->dump() : config.error().message).dump();
  read_vision(*file);
  const GgufMetadata& metadata = (*file)->metadata();
  for (const std::string& key : metadata.keys()) {
    size_t bytes_of_texts = 0;
    const auto texts = metadata.texts(key);
    if (texts.ok())
      for (const std::string_view text : *texts) bytes_of_texts += text.size();
    FUZZ_CHECK(bytes_of_texts <= size);
    (void)metadata.numbers(key).ok();
    (void)metadata.integer(key).ok();
    (void)metadata.text(key).ok();
  }
  return 0;
}
