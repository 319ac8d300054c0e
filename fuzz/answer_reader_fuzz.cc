// The answer reader of `valora bench serve`: its result must not depend on how the bytes are split.
#include "lab/serve/answer_reader.h"

#include <algorithm>

#include "check.h"
#include "input.h"

using namespace valora;

namespace {

bench::RequestRecord read(std::string_view bytes, bool stream, int status, size_t piece) {
  bench::RequestRecord record;
  bench::AnswerReader reader(record, stream);
  for (size_t at = 0; at < bytes.size(); at += piece)
    reader.feed(bytes.substr(at, piece), status, 1);
  reader.finish(status, "", 2);
  return record;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const uint8_t mode = input.byte();
  const int status = mode & 2 ? 200 : 503;
  const std::string_view bytes = input.rest();
  const auto whole = read(bytes, mode & 1, status, std::max<size_t>(bytes.size(), 1));
  const auto pieces = read(bytes, mode & 1, status, 1 + (mode >> 2));
  FUZZ_CHECK(whole.error == pieces.error);
  FUZZ_CHECK(whole.prompt_tokens == pieces.prompt_tokens &&
             whole.completion_tokens == pieces.completion_tokens);
  FUZZ_CHECK(whole.first_token == pieces.first_token && whole.gaps.size() == pieces.gaps.size());
  (void)Json(whole.error).dump(-1, ' ', false, Json::error_handler_t::replace);
  return 0;
}
