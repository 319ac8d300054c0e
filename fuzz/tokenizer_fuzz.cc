// Builds a tokenizer. Input parts: tokenizer.json, text to encode.
#include "text/tokenizer.h"

#include "base/log/log.h"
#include "check.h"
#include "input.h"
#include "text/detokenizer.h"

using namespace valora;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  spdlog::set_level(spdlog::level::off);
  fuzz::Input input(data, size);
  const auto json = parse_json(input.part(), "fuzz", {.unique_keys = true});
  if (!json.ok()) return 0;
  const auto tokenizer = text::Tokenizer::from_json(*json, "fuzz");
  if (!tokenizer.ok()) {
    (void)Json(tokenizer.error().message).dump();
    return 0;
  }
  for (const bool add_special_tokens : {false, true}) {
    const std::vector<int32_t> ids = (*tokenizer)->encode(input.rest(), add_special_tokens);
    for (const int32_t id : ids) FUZZ_CHECK(id >= 0 && id < (*tokenizer)->vocab_size());
    FUZZ_CHECK(ids == (*tokenizer)->encode(input.rest(), add_special_tokens));
    for (const bool skip : {false, true}) {
      text::Detokenizer stream(*tokenizer, skip);
      std::string streamed;
      for (const int32_t id : ids) streamed += stream.push(id);
      streamed += stream.flush();
      FUZZ_CHECK(streamed == (*tokenizer)->decode(ids, skip));
    }
  }
  return 0;
}
