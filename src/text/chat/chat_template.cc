#include "text/chat/chat_template.h"

#include <algorithm>
#include <array>
#include <exception>

#include "base/fault.h"
#include "base/text/strings.h"
#include "base/text/unicode.h"
#include "jinja/interpreter.h"
#include "jinja/values/value_json.h"
#include "text/chat/template_use.h"

namespace valora::text {
namespace {

using jinja::Budget;
using jinja::Value;

constexpr size_t kMaxVariables = 256;
// Names that a request may not set: the conversation itself, and arguments of transformers with
// additional effects.
constexpr std::array<std::string_view, 7> kReserved = {"messages",
                                                       "conversation",
                                                       "chat_template",
                                                       "tokenize",
                                                       "continue_final_message",
                                                       "return_dict",
                                                       "return_assistant_tokens_mask"};

bool has_media(const ChatMessage& message) {
  return std::ranges::any_of(
      message.parts, [](const ChatPart& part) { return part.kind != ChatPart::Kind::kText; });
}

size_t text_bytes(const std::vector<ChatMessage>& messages) {
  size_t bytes = 0;
  for (const ChatMessage& message : messages) {
    for (const ChatPart& part : message.parts) bytes += part.text.size();
    for (const ToolCall& call : message.tool_calls) bytes += call.arguments.dump().size();
    bytes += message.thought.value_or("").size();
  }
  return bytes;
}

Result<Value> part_value(Budget& budget, const ChatPart& part) {
  const auto name = [](const char* text) { return jinja::literal_string(text); };
  switch (part.kind) {
    case ChatPart::Kind::kText: {
      VALORA_TRY(text, jinja::make_string(budget, to_valid_utf8(part.text)));
      return jinja::make_dict(budget,
                              {{name("type"), name("text")}, {name("text"), std::move(text)}});
    }
    case ChatPart::Kind::kImage: return jinja::make_dict(budget, {{name("type"), name("image")}});
    case ChatPart::Kind::kVideo: return jinja::make_dict(budget, {{name("type"), name("video")}});
  }
  return internal("a part of a message has no kind");
}

class ChatTemplate final : public ChatFormat {
 public:
  ChatTemplate(jinja::Template source, std::string_view source_text, ChatTemplateSettings settings)
      : template_(std::move(source)),
        use_(find_content_use(template_)),
        tools_(find_tool_use(source_text)),
        thoughts_(find_thought_marks(source_text)),
        settings_(std::move(settings)) {}

  Result<std::string> render(const std::vector<ChatMessage>& messages,
                             bool add_generation_prompt) const override {
    return render(messages, add_generation_prompt, nullptr, nullptr);
  }

  Result<std::string> render(const std::vector<ChatMessage>& messages, bool add_generation_prompt,
                             const Json& variables, const OrderedJson& tools) const override {
    if (messages.empty()) return invalid("\"messages\" must not be empty", "messages");
    try {
      return render_within_limits(messages, add_generation_prompt, variables, tools);
    } catch (const std::exception& e) {
      return fault("the chat template could not be rendered", e);
    }
  }

  bool takes_tools() const override { return tools_.taken; }
  bool takes_variable(const std::string&) const override { return true; }
  const ThoughtMarks* thought_marks() const override { return thoughts_; }
  ToolCallStyle tool_call_style() const override { return tools_.style; }

 private:
  Result<std::string> render_within_limits(const std::vector<ChatMessage>& messages,
                                           bool add_generation_prompt, const Json& variables,
                                           const OrderedJson& tools) const {
    jinja::Runtime runtime;
    runtime.now = settings_.now;
    runtime.budget.allow_for(text_bytes(messages) + (tools.is_null() ? 0 : tools.dump().size()));
    jinja::Variables values = {{"tools", jinja::None{}},
                               {"documents", jinja::None{}},
                               {"add_generation_prompt", add_generation_prompt}};
    for (const auto& [name, token] : settings_.special_tokens.items()) {
      VALORA_TRY(value, jinja::from_json(runtime.budget, token));
      values[name] = std::move(value);
    }
    VALORA_CHECK(add_variables(runtime.budget, variables, values));
    if (!tools.is_null()) {
      VALORA_TRY(given, jinja::from_json(runtime.budget, tools));
      values["tools"] = std::move(given);
    }
    std::vector<Value> list;
    for (const ChatMessage& message : messages) {
      VALORA_TRY(value, message_value(runtime.budget, message));
      list.push_back(std::move(value));
    }
    VALORA_TRY(all, jinja::make_list(runtime.budget, std::move(list)));
    values["messages"] = std::move(all);
    return jinja::render(template_, runtime, values);
  }

  static Status add_variables(Budget& budget, const Json& variables, jinja::Variables& values) {
    static const std::string kParam = "chat_template_kwargs";
    if (variables.is_null()) return {};
    if (!variables.is_object()) return invalid("\"" + kParam + "\" must be an object", kParam);
    if (variables.size() > kMaxVariables)
      return invalid(
          "\"" + kParam + "\" has more than " + std::to_string(kMaxVariables) + " entries", kParam);
    for (const auto& [name, json] : variables.items()) {
      if (std::ranges::find(kReserved, name) != kReserved.end())
        return invalid("\"" + kParam + "\" cannot set \"" + name + "\"", kParam);
      auto value = jinja::from_json(budget, json);
      if (!value.ok()) return invalid("\"" + kParam + "\": " + value.error().message, kParam);
      values[name] = std::move(*value);
    }
    return {};
  }

  bool takes_list(const ChatMessage& message) const {
    return use_.as_list && (!use_.as_string || has_media(message));
  }

  Result<Value> message_value(Budget& budget, const ChatMessage& message) const {
    VALORA_TRY(role, jinja::make_string(budget, to_valid_utf8(message.role)));
    VALORA_TRY(content, takes_list(message) ? content_list(budget, message)
                                            : content_string(budget, message));
    std::vector<jinja::Dict::Entry> entries;
    const auto add = [&](const char* key, Value value) {
      entries.emplace_back(jinja::literal_string(key), std::move(value));
    };
    add("role", std::move(role));
    add("content", std::move(content));
    // Added only if present, because templates test for them.
    if (!message.name.empty()) {
      VALORA_TRY(name, jinja::make_string(budget, to_valid_utf8(message.name)));
      add("name", std::move(name));
    }
    if (!message.tool_calls.empty()) {
      VALORA_TRY(calls, jinja::from_json(budget, calls_json(message.tool_calls)));
      add("tool_calls", std::move(calls));
    }
    if (!message.tool_call_id.empty()) {
      VALORA_TRY(id, jinja::make_string(budget, to_valid_utf8(message.tool_call_id)));
      add("tool_call_id", std::move(id));
    }
    if (message.thought) {
      VALORA_TRY(thought, jinja::make_string(budget, to_valid_utf8(*message.thought)));
      add("reasoning_content", thought);
      add("reasoning", std::move(thought));
    }
    return jinja::make_dict(budget, std::move(entries));
  }

  // Arguments are passed as an object, not as JSON text as in requests, because templates print
  // them.
  static OrderedJson calls_json(const std::vector<ToolCall>& calls) {
    OrderedJson list = OrderedJson::array();
    for (const ToolCall& call : calls)
      list.push_back({{"id", call.id},
                      {"type", "function"},
                      {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
    return list;
  }

  static Result<Value> content_list(Budget& budget, const ChatMessage& message) {
    std::vector<Value> parts;
    for (const ChatPart& part : message.parts) {
      VALORA_TRY(value, part_value(budget, part));
      parts.push_back(std::move(value));
    }
    return jinja::make_list(budget, std::move(parts));
  }

  Result<Value> content_string(Budget& budget, const ChatMessage& message) const {
    std::string text;
    for (const ChatPart& part : message.parts) {
      if (part.kind == ChatPart::Kind::kText)
        text += part.text;
      else
        text += part.kind == ChatPart::Kind::kImage ? settings_.image_placeholder
                                                    : settings_.video_placeholder;
    }
    return jinja::make_string(budget, to_valid_utf8(text));
  }

  jinja::Template template_;
  ContentUse use_;
  ToolUse tools_;
  const ThoughtMarks* thoughts_;
  ChatTemplateSettings settings_;
};

}  // namespace

Result<std::unique_ptr<ChatFormat>> make_chat_template(std::string_view source,
                                                       const std::string& what,
                                                       ChatTemplateSettings settings) {
  if (settings.special_tokens.is_null()) settings.special_tokens = Json::object();
  if (!settings.special_tokens.is_object())
    return invalid(what + ": the special tokens must be an object", what);
  try {
    auto parsed = jinja::parse(source);
    if (!parsed.ok())
      return unprocessable("the chat template of " + what + ": " + parsed.error().message, what);
    return std::unique_ptr<ChatFormat>(
        std::make_unique<ChatTemplate>(std::move(*parsed), source, std::move(settings)));
  } catch (const std::exception& e) {
    return internal("the chat template of " + what + " could not be read: " + e.what());
  }
}

}  // namespace valora::text
