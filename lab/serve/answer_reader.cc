#include "lab/serve/answer_reader.h"

#include "base/text/strings.h"
#include "lab/serve/answer_json.h"

namespace valora::bench {
namespace {

constexpr size_t kMaxBody = size_t{64} << 20;
constexpr size_t kErrorBytes = 120;

}  // namespace

void AnswerReader::fail(std::string error) {
  if (record_.error.empty()) record_.error = std::move(error);
}

void AnswerReader::feed(std::string_view bytes, int status, double now) {
  if (stream_ && status == 200)
    return events_.feed(bytes, [&](std::string_view data) { on_event(data, now); });
  if (body_.size() + bytes.size() <= kMaxBody) body_ += bytes;
}

void AnswerReader::take_usage(const Json& answer) {
  if (!answer.contains("usage") || !answer["usage"].is_object()) return;
  const Json& usage = answer["usage"];
  const auto count = [](const Json& object, const char* key) {
    const auto value = field_or<int32_t>(object, key, 0);
    return value.ok() ? *value : 0;
  };
  record_.prompt_tokens = count(usage, "prompt_tokens");
  record_.completion_tokens = count(usage, "completion_tokens");
  if (usage.contains("prompt_tokens_details") && usage["prompt_tokens_details"].is_object())
    record_.cached_tokens = count(usage["prompt_tokens_details"], "cached_tokens");
}

void AnswerReader::on_event(std::string_view data, double now) {
  if (data == "[DONE]") {
    done_ = true;
    return;
  }
  const auto event = parse_json(data, "event");
  if (!event.ok() || !event->is_object()) return fail("invalid event in the stream");
  if (event->contains("error")) return fail("in the stream: " + error_text(*event, kErrorBytes));
  const int before = record_.completion_tokens;
  take_usage(*event);
  const Json* const choice = first_choice(*event);
  if (!choice) return;
  // If the server reports usage only at the end, chunks with text count as chunks with tokens.
  const bool counts = event->contains("usage") && (*event)["usage"].is_object();
  if (counts ? record_.completion_tokens <= before : text_of(*choice).empty()) return;
  if (record_.first_token == 0)
    record_.first_token = now;
  else
    record_.gaps.push_back(now - last_piece_);
  last_piece_ = now;
}

void AnswerReader::finish(int status, const std::string& failure, double now) {
  record_.ended = now;
  if (!failure.empty()) return fail(failure);
  const auto answer =
      stream_ && status == 200 ? Result<Json>(Json::object()) : parse_json(body_, "answer");
  if (status != 200)
    return fail("HTTP " + std::to_string(status) + ": " +
                (answer.ok() ? error_text(*answer, kErrorBytes) : shortened(body_, kErrorBytes)));
  if (!answer.ok() || !answer->is_object()) return fail("the answer is not a JSON object");
  if (stream_ && !done_) return fail("the stream ended early");
  take_usage(*answer);
}

}  // namespace valora::bench
