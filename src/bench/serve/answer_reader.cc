#include "bench/serve/answer_reader.h"

#include "base/strings.h"

namespace valora::bench {
namespace {

constexpr size_t kMaxBody = size_t{64} << 20;

// What an OpenAI error object says, or the text itself.
std::string error_kind(const Json& answer) {
  const Json& error = answer.is_object() && answer.contains("error") ? answer["error"] : answer;
  if (error.is_object() && error.contains("message") && error["message"].is_string())
    return shortened(error["message"].get<std::string>(), 120);
  return shortened(error.dump(-1, ' ', false, Json::error_handler_t::replace), 120);
}

bool has_choice(const Json& event) {
  return event.contains("choices") && event["choices"].is_array() && !event["choices"].empty() &&
         event["choices"][0].is_object();
}

bool brings_text(const Json& event) {
  const Json& choice = event["choices"][0];
  const Json& holder = choice.contains("delta") ? choice["delta"] : choice;
  const char* key = choice.contains("delta") ? "content" : "text";
  return holder.is_object() && holder.contains(key) && holder[key].is_string() &&
         !holder[key].get_ref<const std::string&>().empty();
}

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
  if (event->contains("error")) return fail("in the stream: " + error_kind(*event));
  const int before = record_.completion_tokens;
  take_usage(*event);
  if (!has_choice(*event)) return;
  // If the server reports usage only at the end, chunks with text count as chunks with tokens.
  const bool counts = event->contains("usage") && (*event)["usage"].is_object();
  if (counts ? record_.completion_tokens <= before : !brings_text(*event)) return;
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
                (answer.ok() ? error_kind(*answer) : shortened(body_, 120)));
  if (!answer.ok() || !answer->is_object()) return fail("the answer is not a JSON object");
  if (stream_ && !done_) return fail("the stream ended early");
  take_usage(*answer);
}

}  // namespace valora::bench
