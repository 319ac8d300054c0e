// A fixed byte-level tokenizer. Decoding must invert encoding for any text, and streaming any ids
// must give the same text as decoding them.
#include "text/detokenizer.h"

#include "base/text/unicode.h"
#include "check.h"
#include "input.h"
#include "text/testing/tiny_tokenizer.h"

using namespace valora;

namespace {

std::shared_ptr<const text::Tokenizer> make_tokenizer() {
  Json json = text::tiny_tokenizer_json();
  json["normalizer"] = nullptr;
  return text::Tokenizer::from_json(json, "tiny").value();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto tokenizer = make_tokenizer();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string valid = to_valid_utf8(text);
  FUZZ_CHECK(is_valid_utf8(valid));
  FUZZ_CHECK(tokenizer->decode(tokenizer->encode(text), false) == valid);

  fuzz::Input input(data, size);
  const bool skip = input.byte() & 1;
  std::vector<int32_t> ids;
  while (!input.empty()) ids.push_back(input.word() % 300 - 20);
  text::Detokenizer stream(tokenizer, skip);
  std::string streamed;
  for (const int32_t id : ids) {
    const std::string piece = stream.push(id);
    FUZZ_CHECK(is_valid_utf8(piece));
    streamed += piece;
  }
  FUZZ_CHECK(streamed + stream.flush() == tokenizer->decode(ids, skip));
  return 0;
}
