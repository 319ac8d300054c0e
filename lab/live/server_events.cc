#include "lab/live/server_events.h"

#include <fmt/format.h>

#include "base/json/json.h"
#include "base/text/strings.h"
#include "lab/serve/answer_json.h"

namespace valora::bench {
namespace {

constexpr size_t kErrorBytes = 200;

Error unavailable(std::string message) {
  return {ErrorCode::kUnavailable, std::move(message), "url"};
}

Json content_of(const ChatMessage& message) {
  Json parts = Json::array();
  for (const ContentPart& part : message.parts)
    if (const auto* text = std::get_if<std::string>(&part)) {
      parts.push_back({{"type", "text"}, {"text", *text}});
    } else {
      const auto& media = std::get<MediaRef>(part);
      const char* type = media.kind == MediaRef::Kind::kImage ? "image_url" : "video_url";
      parts.push_back({{"type", type}, {type, {{"url", media.url}}}});
    }
  return parts;
}

Json messages_of(const ChatPrompt& chat) {
  Json messages = Json::array();
  for (const ChatMessage& message : chat.messages)
    messages.push_back({{"role", message.role}, {"content", content_of(message)}});
  return messages;
}

}  // namespace

Result<Question> question_of(const GenerateRequest& request, const std::string& base) {
  if (request.adapters.size() > 1 || (!request.adapters.empty() && request.adapters[0].scale != 1))
    return invalid("a request to a server can name at most one adapter, of scale 1", "adapters");
  Json body{{"model", request.adapters.empty() ? base : request.adapters[0].name},
            {"stream", true},
            {"return_token_ids", true},
            {"ignore_eos", request.sampling.ignore_eos}};
  if (request.sampling.max_tokens) body["max_tokens"] = *request.sampling.max_tokens;
  if (request.sampling.temperature) body["temperature"] = *request.sampling.temperature;
  if (request.priority != 0) body["priority"] = request.priority;
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&request.prompt)) {
    body["prompt"] = *ids;
    return Question{"/v1/completions", body.dump()};
  }
  const auto* chat = std::get_if<ChatPrompt>(&request.prompt);
  if (!chat)
    return invalid("the prompt of a request to a server must be token ids or a chat", "prompt");
  body["messages"] = messages_of(*chat);
  return Question{"/v1/chat/completions", body.dump()};
}

Result<AnswerEvent> read_event(std::string_view data) {
  if (data == "[DONE]") return AnswerEvent{{}, true};
  const auto event = parse_json(data, "event");
  if (!event.ok() || !event->is_object()) return unavailable("invalid event in the stream");
  if (event->contains("error")) return unavailable(error_text(*event, kErrorBytes));
  AnswerEvent out;
  const Json* const choice = first_choice(*event);
  if (!choice) return out;
  out.chunk.text = text_of(*choice);
  const Json ids = choice->value("token_ids", Json());
  if (ids.is_array())
    for (const Json& id : ids)
      if (id.is_number_integer())
        out.chunk.tokens.push_back({.chosen = {.id = id.get<int32_t>()}, .top = {}});
  if (out.chunk.tokens.empty() && !out.chunk.text.empty() && ids.is_null())
    return unavailable("the server sends no token_ids, which the next turn needs");
  return out;
}

Error refusal_error(int status, std::string_view body) {
  const auto answer = parse_json(body, "answer");
  return unavailable(
      fmt::format("HTTP {}: {}", status,
                  answer.ok() ? error_text(*answer, kErrorBytes) : shortened(body, kErrorBytes)));
}

}  // namespace valora::bench
