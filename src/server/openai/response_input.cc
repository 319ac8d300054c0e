#include "server/openai/response_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/json/parse_ordered.h"
#include "base/text/strings.h"
#include "server/openai/fields.h"
#include "server/openai/json_text.h"
#include "server/openai/messages.h"
#include "server/openai/unsupported_fields.h"

namespace valora::server {
namespace {

// A chat field and its name in this API.
struct Renamed {
  std::string_view chat, response;
};
constexpr std::array kRenamed = {
    Renamed{"messages", "input"},
    Renamed{"max_completion_tokens", "max_output_tokens"},
    Renamed{"response_format", "text"},
};
// Accepted: they have no effect here.
constexpr std::array kWithoutEffect = {"truncation", "store", "stream_options", "include"};
// Values of "include" for item contents that answers never have.
constexpr std::array kNeverThere = {
    "file_search_call.results",       "web_search_call.results",
    "web_search_call.action.sources", "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",  "reasoning.encrypted_content"};

Error wrong_input(const std::string& path, std::string_view expected) {
  return invalid(fmt::format("\"{}\" must be {}", path, expected), "input");
}

Error in_this_api(Error error) {
  for (const Renamed& name : kRenamed)
    if (error.param.starts_with(name.chat)) {
      error.param = name.response;
      break;
    }
  return error;
}

// Converts a content part to the form used in chats.
Result<Json> chat_part(Json& part, const std::string& path) {
  if (!part.is_object()) return wrong_input(path, "an object");
  const Json& type = member(part, "type");
  if (type == "input_text" || type == "output_text" || type == "text") {
    if (!member(part, "text").is_string()) return wrong_input(path + ".text", "a string");
    return Json{{"type", "text"}, {"text", std::move(part["text"])}};
  }
  if (type == "refusal") return std::move(part);
  if (type != "input_image")
    return not_implemented(
        fmt::format("\"{}\" of type {} is not supported by this server", path,
                    shortened(type.is_string() ? type.get<std::string>() : type.dump(), 40)),
        "input");
  if (!member(part, "file_id").is_null())
    return not_implemented(fmt::format("\"{}.file_id\" is not supported by this server", path),
                           "input");
  if (!member(part, "image_url").is_string()) return wrong_input(path + ".image_url", "a string");
  Json url = Json::object();
  url["url"] = std::move(part["image_url"]);
  // The part may carry pixel limits.
  part["type"] = "image_url";
  part["image_url"] = std::move(url);
  return std::move(part);
}

Result<Json> chat_content(Json& content, const std::string& path) {
  if (content.is_string()) return std::move(content);
  if (!content.is_array()) return wrong_input(path, "a string or a list of parts");
  Json parts = Json::array();
  for (size_t i = 0; i < content.size(); ++i) {
    VALORA_TRY(part, chat_part(content[i], fmt::format("{}[{}]", path, i)));
    parts.push_back(std::move(part));
  }
  return parts;
}

// Converts the items of "input" to a chat's messages.
class Input {
 public:
  Status add(Json& item, const std::string& path) {
    if (!item.is_object()) return wrong_input(path, "an object");
    const std::string type = item.value("type", Json()).is_string()
                                 ? item["type"].get<std::string>()
                                 : std::string("message");
    if (type == "message") return add_message(item, path);
    if (type == "function_call") return add_call(item, path);
    if (type == "function_call_output") return add_result(item, path);
    if (type == "reasoning") return add_thought(item, path);
    return not_implemented(
        fmt::format("\"{}\" of type {} is not supported by this server", path, shortened(type, 40)),
        "input");
  }

  // A thought without an answer is a message of its own.
  void end_thought() {
    if (thought_) begin_answer();
  }

  Json messages = Json::array();
  MediaPaths media;

 private:
  Json& begin_answer() {
    messages.push_back({{"role", "assistant"}, {"content", nullptr}});
    if (thought_) messages.back()["reasoning_content"] = *std::exchange(thought_, std::nullopt);
    return messages.back();
  }

  // The thought belongs to the message or call behind it. Its summary counts if its text is not
  // there.
  Status add_thought(const Json& item, const std::string& path) {
    if (!member(item, "encrypted_content").is_null())
      return not_implemented(
          fmt::format("\"{}.encrypted_content\" cannot be read by this server; leave it out", path),
          "input");
    std::string text;
    for (const char* key : {"content", "summary"}) {
      const Json& parts = member(item, key);
      if (parts.is_null()) continue;
      if (!parts.is_array()) return wrong_input(path + "." + key, "a list of parts");
      for (const Json& part : parts) {
        if (!part.is_object() || !member(part, "text").is_string())
          return wrong_input(path + "." + key, "a list of parts with a \"text\"");
        if (!text.empty()) text += "\n";
        text += part["text"].get_ref<const std::string&>();
      }
      if (!text.empty()) break;
    }
    if (!text.empty()) thought_ = thought_ ? *thought_ + "\n" + text : text;
    return {};
  }

  Status add_message(Json& item, const std::string& path) {
    if (!member(item, "role").is_string()) return wrong_input(path + ".role", "a string");
    if (!item.contains("content"))
      return wrong_input(path + ".content", "a string or a list of parts");
    if (const Status known = refuse_media_keys(item, path); !known.ok())
      return not_implemented(known.error().message, "input");
    VALORA_TRY(content, chat_content(item["content"], path + ".content"));
    if (item["role"] == "assistant") {
      note_media(content, path + ".content");
      begin_answer()["content"] = std::move(content);
    } else {
      end_thought();
      note_media(content, path + ".content");
      messages.push_back({{"role", item["role"]}, {"content", std::move(content)}});
    }
    return {};
  }

  // The content will be that of the next message.
  void note_media(const Json& content, const std::string& path) {
    for (size_t i = 0; content.is_array() && i < content.size(); ++i)
      if (content[i]["type"] == "image_url")
        media.emplace_back(fmt::format("messages[{}].content[{}]", messages.size(), i),
                           fmt::format("{}[{}]", path, i));
  }

  // Calls are added to the assistant message before them.
  Status add_call(const Json& item, const std::string& path) {
    for (const char* field : {"call_id", "name", "arguments"})
      if (!member(item, field).is_string()) return wrong_input(path + "." + field, "a string");
    if (thought_ || messages.empty() || messages.back()["role"] != "assistant") begin_answer();
    Json& calls = messages.back()["tool_calls"];
    if (calls.is_null()) calls = Json::array();
    calls.push_back({{"id", item["call_id"]},
                     {"type", "function"},
                     {"function", {{"name", item["name"]}, {"arguments", item["arguments"]}}}});
    return {};
  }

  Status add_result(Json& item, const std::string& path) {
    if (!member(item, "call_id").is_string()) return wrong_input(path + ".call_id", "a string");
    if (!item.contains("output"))
      return wrong_input(path + ".output", "a string or a list of parts");
    VALORA_TRY(content, chat_content(item["output"], path + ".output"));
    end_thought();
    note_media(content, path + ".output");
    messages.push_back(
        {{"role", "tool"}, {"tool_call_id", item["call_id"]}, {"content", std::move(content)}});
    return {};
  }

  std::optional<std::string> thought_;
};

Result<Input> chat_messages(Json& body) {
  Input input;
  const Json& instructions = member(body, "instructions");
  if (!instructions.is_null() && !instructions.is_string())
    return invalid("\"instructions\" must be a string", "instructions");
  if (instructions.is_string())
    input.messages.push_back({{"role", "system"}, {"content", instructions}});
  if (!body.contains("input")) return invalid("\"input\" is missing", "input");
  Json& given = body["input"];
  if (given.is_string()) {
    input.messages.push_back({{"role", "user"}, {"content", std::move(given)}});
    return input;
  }
  if (!given.is_array() || given.empty())
    return wrong_input("input", "a string or a list of items");
  for (size_t i = 0; i < given.size(); ++i)
    VALORA_CHECK(input.add(given[i], fmt::format("input[{}]", i)));
  input.end_thought();
  return input;
}

// Converts {"type": "function", "name", …} to {"type": "function", "function": {"name", …}}.
OrderedJson chat_tool(const OrderedJson& tool) {
  if (!tool.is_object() || tool.value("type", OrderedJson()) != "function") return tool;
  OrderedJson function = tool;
  function.erase("type");
  return {{"type", "function"}, {"function", std::move(function)}};
}

OrderedJson chat_format(const OrderedJson& format) {
  if (!format.is_object() || format.value("type", OrderedJson()) != "json_schema") return format;
  OrderedJson schema = format;
  schema.erase("type");
  return {{"type", "json_schema"}, {"json_schema", std::move(schema)}};
}

// Fields that chats write differently, converted to the chat's form.
OrderedJson translated_fields(const OrderedJson& body) {
  OrderedJson out = OrderedJson::object();
  if (const auto tools = body.find("tools"); tools != body.end()) {
    out["tools"] = *tools;
    if (tools->is_array())
      for (OrderedJson& tool : out["tools"]) tool = chat_tool(tool);
  }
  const auto text = body.find("text");
  if (text != body.end() && text->is_object() && text->contains("format"))
    out["response_format"] = chat_format(text->at("format"));
  return out;
}

// A chat body as text, for the fields whose key order matters: everything but the messages, which
// may be large.
std::string ordered_chat(const OrderedJson& body, const OrderedJson& translated) {
  OrderedJson out = OrderedJson::object();
  for (const auto& [field, value] : body.items())
    if (field != "input") out[field] = value;
  out.update(translated);
  return to_text(out);
}

Json chat_choice(const Json& choice) {
  const bool named = choice.is_object() && member(choice, "type") == "function";
  if (named) return {{"type", "function"}, {"function", {{"name", member(choice, "name")}}}};
  if (!choice.is_object() || member(choice, "type") != "allowed_tools") return choice;
  Json allowed = {{"mode", member(choice, "mode")}, {"tools", Json::array()}};
  for (const Json& tool : choice.value("tools", Json::array()))
    allowed["tools"].push_back(tool.is_object() ? member(tool, "name") : tool);
  return {{"type", "allowed_tools"}, {"allowed_tools", std::move(allowed)}};
}

Status check_include(const Json& body) {
  if (unused(body, "include")) return {};
  const Json& include = body["include"];
  if (!include.is_array()) return invalid("\"include\" must be a list", "include");
  for (const Json& item : include)
    if (std::ranges::find(kNeverThere, item) == kNeverThere.end())
      return not_implemented(fmt::format("\"include\" of {} is not supported by this server",
                                         shortened(item.dump(), 60)),
                             "include");
  return {};
}

// "reasoning.effort" is the chat's "reasoning_effort"; thoughts have no summaries.
Status translate_reasoning(Json& body) {
  const Json reasoning = member(body, "reasoning");
  body.erase("reasoning");
  if (reasoning.is_null()) return {};
  if (!reasoning.is_object()) return invalid("\"reasoning\" must be an object", "reasoning");
  const Json& effort = member(reasoning, "effort");
  if (effort.is_null()) return {};
  const Json& other = member(body, "reasoning_effort");
  if (!other.is_null() && other != effort)
    return invalid("\"reasoning.effort\" and \"reasoning_effort\" differ; send one", "reasoning");
  body["reasoning_effort"] = effort;
  return {};
}

Status check_fields(const Json& body) {
  VALORA_CHECK(refuse_fields(body, "/v1/responses"));
  if (!unused(body, "truncation") && body["truncation"] != "disabled")
    return not_implemented("\"truncation\" other than \"disabled\" is not supported by this server",
                           "truncation");
  VALORA_CHECK(check_include(body));
  const Json& text = member(body, "text");
  if (!text.is_null() && !text.is_object()) return invalid("\"text\" must be an object", "text");
  if (text.is_object()) VALORA_CHECK(check_verbosity(text, "text"));
  if (!member(body, "tools").is_null() && !member(body, "tools").is_array())
    return invalid("\"tools\" must be a list", "tools");
  return {};
}

OrderedJson repeated_fields(const OrderedJson& body) {
  const auto field = [&](const char* name, const OrderedJson& fallback) {
    const auto found = body.find(name);
    return found == body.end() || found->is_null() ? fallback : *found;
  };
  OrderedJson out = OrderedJson::object();
  out["instructions"] = field("instructions", nullptr);
  out["max_output_tokens"] = field("max_output_tokens", nullptr);
  out["metadata"] = field("metadata", OrderedJson::object());
  out["parallel_tool_calls"] = field("parallel_tool_calls", true);
  out["previous_response_id"] = nullptr;
  out["reasoning"] = field("reasoning", {{"effort", nullptr}, {"summary", nullptr}});
  out["store"] = false;
  out["temperature"] = field("temperature", nullptr);
  out["text"] = field("text", {{"format", {{"type", "text"}}}});
  out["tool_choice"] = field("tool_choice", "auto");
  out["tools"] = field("tools", OrderedJson::array());
  out["top_p"] = field("top_p", nullptr);
  out["truncation"] = "disabled";
  out["user"] = field("user", nullptr);
  return out;
}

}  // namespace

Result<ResponseBody> parse_response(std::string_view text, const RequestLimits& limits) {
  VALORA_TRY(body, parse_body(text));
  VALORA_CHECK(check_fields(body));
  VALORA_CHECK(check_integers_of(text, {"tools", "chat_template_kwargs"}));
  VALORA_TRY(input, chat_messages(body));
  const auto as_sent = parse_ordered(text);
  const OrderedJson translated = translated_fields(as_sent);
  const std::string ordered_text = ordered_chat(as_sent, translated);
  const bool names_effort = !member(body, "reasoning_effort").is_null();
  VALORA_CHECK(translate_reasoning(body));
  Json chat = std::move(body);
  for (const char* field : kWithoutEffect) chat.erase(field);
  for (const char* field : {"input", "instructions", "text", "tools"}) chat.erase(field);
  chat.update(Json::parse(to_text(translated)));
  chat["messages"] = std::move(input.messages);
  if (const auto most = chat.find("max_output_tokens"); most != chat.end()) {
    chat["max_completion_tokens"] = *most;
    chat.erase("max_output_tokens");
  }
  if (const auto choice = chat.find("tool_choice"); choice != chat.end())
    *choice = chat_choice(*choice);
  auto parsed = parse_chat_body(std::move(chat), ordered_text, limits);
  if (!parsed.ok() && parsed.error().param == "reasoning_effort" && !names_effort)
    return invalid("\"reasoning.effort\": " + parsed.error().message, "reasoning");
  if (!parsed.ok()) return in_this_api(parsed.error());
  if (parsed->constraint && parsed->constraint->param == "response_format")
    parsed->constraint->param = "text";
  return ResponseBody{std::move(*parsed), repeated_fields(as_sent), std::move(input.media)};
}

Error in_response(Error error, const MediaPaths& paths) {
  for (const auto& [chat, response] : paths) {
    if (error.param != chat) continue;
    error.param = response;
    if (const size_t at = error.message.find(chat); at != std::string::npos)
      error.message.replace(at, chat.size(), response);
    break;
  }
  return error;
}

}  // namespace valora::server
