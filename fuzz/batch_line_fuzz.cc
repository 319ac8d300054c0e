// A line of a batch's input. Its body is the line's, as JSON and as text; its row of an answer is
// one line that names it.
#include "base/json/json.h"
#include "check.h"
#include "server/batches/answer_rows.h"
#include "server/batches/batch_lines.h"

using namespace valora;
using namespace valora::server;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = parse_batch_line(text, {});
  if (const auto* fault = std::get_if<LineFault>(&parsed)) {
    FUZZ_CHECK(!fault->code.empty() && !fault->message.empty());
    (void)Json(fault->message).dump();  // the message must be valid UTF-8
    return 0;
  }
  const BatchLine& line = std::get<BatchLine>(parsed);
  const Json whole = Json::parse(text);
  FUZZ_CHECK(is_batch_endpoint(line.url) && whole.at("url") == line.url);
  FUZZ_CHECK(Json::parse(line.body) == whole.at("body"));
  for (const std::string& row : {answer_row(line.custom_id, "id", {.body = line.body}),
                                 failure_row(line.custom_id, "batch_expired", line.body)}) {
    FUZZ_CHECK(row.find('\n') == row.size() - 1);
    FUZZ_CHECK(*custom_id_of(row) == line.custom_id);
  }
  return 0;
}
