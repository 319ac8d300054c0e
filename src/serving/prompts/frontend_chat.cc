// The part of the frontend that renders conversations as prompts.
#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/parse_ordered.h"
#include "serving/prompts/chat_media.h"
#include "serving/prompts/frontend.h"
#include "serving/prompts/thoughts.h"
#include "text/chat_template.h"
#include "text/tool_prompt.h"

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

// Whether the text ends within a thought that the template began.
bool ends_in_thought(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return std::ranges::any_of(kThoughtMarks,
                             [&](const auto& mark) { return text.ends_with(mark.begin); });
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
  VALORA_TRY(text, chat.continue_final_message
                       ? text::render_continued(format, std::move(messages),
                                                chat.template_variables, tools)
                       : format.render(messages, opens_turn, chat.template_variables, tools));
  if (!mark.empty()) text = text::with_marks_unescaped(text, mark);
  VALORA_CHECK(check_text(text::without_marks(text, mark).size(), rendered.field, language));
  rendered.opens_thought = ends_in_thought(text);
  rendered.tokens = encode_chat(text, mark, language);
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
                                           const Language& language) const {
  const bool has_bos = language.around.empty() ||
                       text.starts_with(language.tokenizer->token_bytes(language.around.front()));
  return language.tokenizer->encode(
      family_->image_text.empty()
          ? text
          : with_replaced(text, family_->image_placeholder, family_->image_text),
      /*add_special_tokens=*/family_->chat_adds_bos && !has_bos, mark);
}

}  // namespace valora::serving
