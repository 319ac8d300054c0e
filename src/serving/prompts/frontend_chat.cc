// The part of the frontend that renders conversations as prompts.
#include <algorithm>
#include <string_view>

#include "base/json/parse_ordered.h"
#include "serving/prompts/chat_media.h"
#include "serving/prompts/frontend.h"
#include "text/chat/chat_template.h"
#include "text/chat/tool_prompt.h"

namespace valora::serving {
namespace {

bool has_tools(const std::vector<text::ChatMessage>& messages, const OrderedJson& tools) {
  return !tools.is_null() || std::ranges::any_of(messages, [](const text::ChatMessage& message) {
    return !message.tool_calls.empty();
  });
}

size_t text_bytes(const std::vector<text::ChatMessage>& messages) {
  size_t bytes = 0;
  for (const text::ChatMessage& message : messages) {
    for (const text::ChatPart& part : message.parts) bytes += part.text.size();
    bytes += message.thought.value_or("").size();
  }
  return bytes;
}

text::ChatPart::Kind part_kind(MediaRef::Kind kind) {
  return kind == MediaRef::Kind::kImage ? text::ChatPart::Kind::kImage
                                        : text::ChatPart::Kind::kVideo;
}

// Returns the conversation with a placeholder part for each media item, and appends the items to
// `media`. URLs are moved, because they may hold megabytes.
std::vector<text::ChatMessage> split_media(ChatPrompt& chat,
                                           std::vector<RenderedPrompt::Item>& media) {
  std::vector<text::ChatMessage> messages;
  for (ChatMessage& message : chat.messages) {
    text::ChatMessage out{.role = std::move(message.role),
                          .parts = {},
                          .tool_call_id = std::move(message.tool_call_id),
                          .name = std::move(message.name),
                          .thought = std::move(message.thought)};
    for (ToolCall& call : message.tool_calls)
      out.tool_calls.push_back(
          {std::move(call.id), std::move(call.name), parse_ordered(call.arguments)});
    for (ContentPart& part : message.parts) {
      if (auto* text = std::get_if<std::string>(&part)) {
        out.parts.push_back({text::ChatPart::Kind::kText, std::move(*text)});
      } else {
        media.push_back({std::move(std::get<MediaRef>(part)), nullptr, nullptr});
        out.parts.push_back({part_kind(media.back().ref.kind), {}});
      }
    }
    messages.push_back(std::move(out));
  }
  return messages;
}

std::string with_replaced(const std::string& text, const std::string& part, const std::string& by) {
  std::string out;
  size_t from = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, from)) {
    out.append(text, from, at - from).append(by);
    from = at + part.size();
  }
  return out.append(text, from);
}

// Where the answer to a rendered conversation begins. continued: the text that it continues.
text::ThoughtPlace place_of(std::string_view rendered, const std::optional<std::string>& continued,
                            const ThoughtSyntax& syntax) {
  using text::ThoughtPlace;
  const ThoughtPlace place = text::place_after(rendered, *syntax.marks);
  if (place != ThoughtPlace::kUndecided) return place;
  return continued ? text::place_within(*continued, *syntax.marks) : syntax.undecided;
}

}  // namespace

Status Frontend::render_chat(ChatPrompt chat, bool add_generation_prompt, const Language& language,
                             RenderedPrompt& rendered) const {
  VALORA_TRY(own, own_format(chat, language));
  const bool films = language.video_format && has_media(chat, MediaRef::Kind::kVideo);
  const text::ChatFormat& format = own     ? *own
                                   : films ? *language.video_format
                                           : *language.chat_format;
  VALORA_TRY(processors, own_processors(chat));
  const bool opens_turn = chat.add_generation_prompt.value_or(add_generation_prompt);
  auto tools = chat.tools.empty() ? OrderedJson() : parse_ordered(chat.tools);
  std::vector<text::ChatMessage> messages = split_media(chat, rendered.media);
  for (size_t i = 0; i < processors.size(); ++i)
    rendered.media[i].processor = std::move(processors[i]);
  std::string mark;
  if (chat.plain_texts || family_->plain_texts) {
    VALORA_CHECK(
        check_text(text_bytes(messages), rendered.field, language));  // before marks lengthen it
    VALORA_TRY(chosen, language.content_marks->apply(messages, tools, chat.template_variables));
    mark = std::move(chosen);
  }
  if (!format.takes_tools() && has_tools(messages, tools)) {
    messages = text::with_tools_in_text(std::move(messages), tools);
    tools = nullptr;
  }
  std::optional<std::string> continued;
  if (chat.continue_final_message) continued = joined_text(messages.back());
  const Json variables = variables_of(chat, format);
  VALORA_TRY(text, continued ? text::render_continued(format, std::move(messages), variables, tools)
                             : format.render(messages, opens_turn, variables, tools));
  if (!mark.empty()) text = text::with_marks_unescaped(text, mark);
  VALORA_CHECK(check_text(text::without_marks(text, mark).size(), rendered.field, language));
  if (language.thoughts) rendered.thought = place_of(text, continued, *language.thoughts);
  rendered.tokens = encode_chat(text, mark, chat.add_special_tokens, language);
  return {};
}

Json Frontend::variables_of(const ChatPrompt& chat, const text::ChatFormat& format) const {
  Json out = chat.template_variables;
  for (const Json* more : {&chat.template_hints, &template_defaults_})
    for (const auto& [name, value] : more->items()) {
      if (!format.takes_variable(name) || (out.is_object() && out.contains(name))) continue;
      if (!out.is_structured()) out = Json::object();
      out[name] = value;
    }
  return out;
}

// Tries them on a conversation, unless it cannot be rendered without them either.
Status Frontend::read_template_defaults(const std::string& text) {
  static const std::string kOption = "--default-chat-template-kwargs";
  if (text.empty()) return {};
  VALORA_TRY(variables, parse_json(text, kOption));
  if (!variables.is_object()) return invalid(kOption + " must be a JSON object", kOption);
  const text::ChatFormat& format = *base_.chat_format;
  const std::vector<text::ChatMessage> messages = {
      {.role = "user", .parts = {{text::ChatPart::Kind::kText, "a"}}}};
  const auto rendered = format.render(messages, true, variables);
  if (!rendered.ok() && (rendered.error().param == "chat_template_kwargs" ||
                         format.render(messages, true, nullptr).ok()))
    return invalid(kOption + ": " + rendered.error().message, kOption);
  template_defaults_ = std::move(variables);
  return {};
}

Result<std::unique_ptr<text::ChatFormat>> Frontend::own_format(const ChatPrompt& chat,
                                                               const Language& language) const {
  if (chat.chat_template.empty()) return std::unique_ptr<text::ChatFormat>();
  VALORA_TRY(special_tokens, text::read_special_tokens(language.folder));
  auto format = text::make_chat_template(
      chat.chat_template, "the request",
      {std::move(special_tokens), family_->image_placeholder, family_->video_placeholder});
  if (!format.ok()) return invalid(format.error().message, "chat_template");
  return format;
}

std::vector<int32_t> Frontend::encode_chat(const std::string& text, const std::string& mark,
                                           bool add_special_tokens,
                                           const Language& language) const {
  const bool has_bos = language.around.empty() ||
                       text.starts_with(language.tokenizer->token_bytes(language.around.front()));
  return language.tokenizer->encode(
      family_->image_text.empty()
          ? text
          : with_replaced(text, family_->image_placeholder, family_->image_text),
      /*add_special_tokens=*/add_special_tokens || (family_->chat_adds_bos && !has_bos), mark);
}

}  // namespace valora::serving
