// Builds the tokenizer in the metadata of a GGUF file. Input parts: the file, text to encode.
#include "base/log/log.h"
#include "base/tensors/gguf.h"
#include "check.h"
#include "input.h"
#include "text/gguf/tokenizer.h"
#include "text/tokenizer.h"

using namespace valora;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  spdlog::set_level(spdlog::level::off);
  fuzz::Input input(data, size);
  const auto file = Gguf::from_bytes(std::string(input.part()), "fuzz");
  if (!file.ok()) return 0;
  const GgufMetadata& metadata = (*file)->metadata();
  const auto special = text::gguf_special_tokens(metadata);
  if (special.ok()) (void)special->dump();
  (void)text::gguf_chat_template(metadata).ok();
  const auto json = text::gguf_tokenizer(metadata);
  if (!json.ok()) {
    (void)Json(json.error().message).dump();
    return 0;
  }
  const auto ends = text::gguf_end_tokens(metadata);
  if (ends.ok())
    for (const int64_t id : *ends) FUZZ_CHECK(id >= 0);
  const auto tokenizer = text::Tokenizer::from_json(*json, "fuzz");
  if (!tokenizer.ok()) {
    (void)Json(tokenizer.error().message).dump();
    return 0;
  }
  const std::vector<int32_t> ids = (*tokenizer)->encode(input.rest());
  for (const int32_t id : ids) FUZZ_CHECK(id >= 0 && id < (*tokenizer)->vocab_size());
  (void)Json((*tokenizer)->decode(ids, false)).dump();
  return 0;
}
