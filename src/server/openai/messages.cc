#include "server/openai/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text/strings.h"
#include "server/openai/fields.h"

namespace valora::server {
namespace {

constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant",
                                                    "tool"};
constexpr std::array<std::string_view, 5> kUnsupportedParts = {"input_audio", "audio_url", "file",
                                                               "image_embeds", "image_pil"};

Error wrong_message(const std::string& path, std::string_view expected) {
  return invalid(fmt::format("\"{}\" must be {}", path, expected), path);
}

// Media are megabytes of base64, so they are moved rather than copied.
std::string take_string(Json& value) { return std::move(value.get_ref<std::string&>()); }

Result<std::string> part_type(const Json& part, const std::string& path) {
  const Json& type = member(part, "type");
  if (type.is_string()) return type.get<std::string>();
  if (!type.is_null()) return wrong_message(path + ".type", "a string");
  for (const char* key :
       {"text", "image_url", "video_url", "input_audio", "audio_url", "file", "image_embeds"})
    if (part.contains(key)) return std::string(key);
  return wrong_message(path, "an object with a \"type\"");
}

Result<MediaRef> parse_media(Json& part, const std::string& type, const std::string& path) {
  const auto kind = type == "image_url" ? MediaRef::Kind::kImage : MediaRef::Kind::kVideo;
  const std::string at = path + "." + type;
  if (!part.contains(type)) return invalid(fmt::format("\"{}\" is missing", at), at);
  Json& value = part[type];
  if (value.is_string()) return MediaRef{kind, take_string(value)};
  if (!value.is_object()) return wrong_message(at, "a string or an object with a \"url\"");
  if (!member(value, "url").is_string()) return wrong_message(at + ".url", "a string");
  return MediaRef{kind, take_string(value["url"])};
}

}  // namespace

Status refuse_media_keys(const Json& message, const std::string& path) {
  for (const char* key : {"images", "image", "videos", "video"})
    if (!unused(message, key))
      return not_implemented(
          fmt::format("\"{0}.{1}\" is not supported by this server: send media as image_url or "
                      "video_url parts of \"{0}.content\"",
                      path, key),
          path + "." + key);
  return {};
}

Result<ContentPart> parse_content_part(Json& part, const std::string& path) {
  if (part.is_string()) return ContentPart(take_string(part));
  if (!part.is_object()) return wrong_message(path, "an object or a string");
  VALORA_TRY(type, part_type(part, path));
  if (type == "text" || type == "refusal") {
    if (!member(part, type).is_string()) return wrong_message(path + "." + type, "a string");
    return ContentPart(take_string(part[type]));
  }
  if (type == "image_url" || type == "video_url") {
    VALORA_TRY(settings, part_settings(part, type, path));
    VALORA_TRY(media, parse_media(part, type, path));
    if (media.url.empty())
      return invalid(fmt::format("\"{}.{}\" has an empty URL", path, type), path + "." + type);
    media.settings = settings;
    return ContentPart(std::move(media));
  }
  if (std::find(kUnsupportedParts.begin(), kUnsupportedParts.end(), type) !=
      kUnsupportedParts.end())
    return not_implemented(
        fmt::format("content parts of type \"{}\" are not supported by this server", type), path);
  return invalid(fmt::format("\"{}.type\" is \"{}\"; use text, image_url or video_url", path,
                             shortened(type, 40)),
                 path + ".type");
}

namespace {

Result<ToolCall> parse_call(const Json& call, const std::string& path) {
  if (!call.is_object()) return wrong_message(path, "an object");
  const Json& type = member(call, "type");
  if (!type.is_null() && type != "function") return wrong_message(path + ".type", "\"function\"");
  const Json& function = member(call, "function");
  if (!function.is_object()) return wrong_message(path + ".function", "an object");
  const Json& name = member(function, "name");
  if (!name.is_string()) return wrong_message(path + ".function.name", "a string");
  const Json& arguments = member(function, "arguments");
  ToolCall out{.id = {}, .name = name.get<std::string>(), .arguments = "{}"};
  if (member(call, "id").is_string()) out.id = member(call, "id").get<std::string>();
  if (arguments.is_null()) return out;
  const std::string at = path + ".function.arguments";
  if (!arguments.is_string()) return wrong_message(at, "a string");
  if (arguments.get_ref<const std::string&>().empty()) return out;
  out.arguments = arguments.get<std::string>();
  const auto parsed = parse_json(out.arguments, "a call's arguments");
  if (!parsed.ok() || !parsed->is_object()) return wrong_message(at, "the text of a JSON object");
  VALORA_CHECK(check_integers(out.arguments, at));
  return out;
}

Status parse_tool_fields(const Json& message, const std::string& path, ChatMessage& out) {
  for (const auto& [key, field] : {std::pair{"name", &ChatMessage::name},
                                   std::pair{"tool_call_id", &ChatMessage::tool_call_id}}) {
    const Json& value = member(message, key);
    if (value.is_null()) continue;
    if (!value.is_string()) return wrong_message(path + "." + key, "a string");
    out.*field = value.get<std::string>();
  }
  if (unused(message, "tool_calls")) return {};
  const std::string at = path + ".tool_calls";
  const Json& calls = member(message, "tool_calls");
  if (out.role != "assistant")
    return invalid(fmt::format("\"{}\" is only allowed in messages of the assistant", at), at);
  if (!calls.is_array()) return wrong_message(at, "a list");
  for (size_t i = 0; i < calls.size(); ++i) {
    VALORA_TRY(call, parse_call(calls[i], fmt::format("{}[{}]", at, i)));
    out.tool_calls.push_back(std::move(call));
  }
  return {};
}

// The thought of an earlier turn, under its older or its newer name.
Status parse_thought(const Json& message, const std::string& path, ChatMessage& out) {
  if (out.role != "assistant") return {};
  for (const char* key : {"reasoning_content", "reasoning"}) {
    const Json& value = member(message, key);
    if (value.is_null()) continue;
    if (!value.is_string()) return wrong_message(path + "." + key, "a string");
    const auto& text = value.get_ref<const std::string&>();
    if (out.thought && *out.thought != text)
      return invalid(
          fmt::format("\"{0}.reasoning\" and \"{0}.reasoning_content\" differ; send one", path),
          path + ".reasoning");
    out.thought = text;
  }
  return {};
}

Result<ChatMessage> parse_message(Json& message, const std::string& path) {
  if (!message.is_object()) return wrong_message(path, "an object");
  VALORA_CHECK(refuse_media_keys(message, path));
  if (!member(message, "role").is_string()) return wrong_message(path + ".role", "a string");
  ChatMessage out;
  out.role = message["role"].get<std::string>();
  if (std::find(kRoles.begin(), kRoles.end(), out.role) == kRoles.end())
    return invalid(fmt::format("\"{}.role\" is \"{}\"; use one of {}", path,
                               shortened(out.role, 40), fmt::join(kRoles, ", ")),
                   path + ".role");
  if (out.role == "developer") out.role = "system";  // OpenAI's newer name of the system role
  for (const char* field : {"function_call", "audio"})
    if (!unused(message, field))
      return not_implemented(fmt::format("\"{}.{}\" is not supported by this server", path, field),
                             path + "." + field);
  VALORA_CHECK(parse_tool_fields(message, path, out));
  VALORA_CHECK(parse_thought(message, path, out));
  if (!message.contains("content") || message["content"].is_null()) {
    if (out.role != "assistant")
      return invalid(fmt::format("\"{}.content\" is missing", path), path + ".content");
    return out;
  }
  Json& content = message["content"];
  if (content.is_string()) {
    out.parts.emplace_back(take_string(content));
    return out;
  }
  if (!content.is_array()) return wrong_message(path + ".content", "a string or a list of parts");
  for (size_t i = 0; i < content.size(); ++i) {
    VALORA_TRY(part, parse_content_part(content[i], fmt::format("{}.content[{}]", path, i)));
    out.parts.push_back(std::move(part));
  }
  return out;
}

}  // namespace

Result<ChatPrompt> parse_messages(Json& body, const RequestLimits& limits) {
  if (!body.contains("messages")) return invalid("\"messages\" is missing", "messages");
  Json& messages = body["messages"];
  if (!messages.is_array()) return wrong_message("messages", "a list");
  if (messages.empty()) return invalid("\"messages\" is empty", "messages");
  ChatPrompt prompt;
  prompt.plain_texts = limits.plain_texts;
  for (size_t i = 0; i < messages.size(); ++i) {
    VALORA_TRY(message, parse_message(messages[i], fmt::format("messages[{}]", i)));
    prompt.messages.push_back(std::move(message));
  }
  VALORA_CHECK(check_media(prompt, limits.media));
  VALORA_TRY(add_generation_prompt, optional_field<bool>(body, "add_generation_prompt"));
  prompt.add_generation_prompt = add_generation_prompt;
  VALORA_TRY(continues, flag(body, "continue_final_message", false));
  if (continues && add_generation_prompt.value_or(false))
    return invalid(
        "\"continue_final_message\" continues the last message, but \"add_generation_prompt\" "
        "begins another",
        "continue_final_message");
  prompt.continue_final_message = continues;
  if (continues) prompt.add_generation_prompt = false;
  VALORA_CHECK(parse_rendering(body, limits, prompt));
  if (Json& variables = body["chat_template_kwargs"]; !variables.is_null()) {
    if (!variables.is_object()) return wrong_message("chat_template_kwargs", "an object");
    prompt.template_variables = std::move(variables);
  }
  return prompt;
}

}  // namespace valora::server
