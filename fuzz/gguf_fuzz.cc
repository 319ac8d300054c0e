// Reads a GGUF file. Tensors must be inside the file, and metadata must be readable, also as a
// configuration.
#include "base/tensors/gguf.h"

#include "check.h"
#include "models/spec/gguf_config.h"

using namespace valora;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file =
      Gguf::from_bytes(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!file.ok()) {
    FUZZ_CHECK(!file.error().message.empty());
    return 0;
  }
  const auto bytes = (*file)->bytes();
  size_t end = 0;
  for (const GgufTensor& tensor : (*file)->tensors()) {
    const GgufBlock& block = block_of(tensor.type);
    uint64_t values = 1;
    for (const int64_t n : tensor.shape) values *= static_cast<uint64_t>(n);
    FUZZ_CHECK(values / static_cast<uint64_t>(block.values) * block.bytes == tensor.bytes.size());
    FUZZ_CHECK(tensor.begin >= end && tensor.begin + tensor.bytes.size() <= bytes.size());
    FUZZ_CHECK(tensor.bytes.data() == bytes.data() + tensor.begin);
    FUZZ_CHECK((*file)->find(tensor.name) == &tensor);
    end = tensor.begin + tensor.bytes.size();
  }
  const auto config = models::gguf_config(**file);
  (void)Json(config.ok() ? config->dump() : config.error().message).dump();
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
