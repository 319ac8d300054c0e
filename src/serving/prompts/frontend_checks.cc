// Checks of prompts before preparation, and of placeholders at start-up.
#include <algorithm>

#include "base/json/json.h"
#include "serving/prompts/chat_media.h"
#include "serving/prompts/frontend.h"
#include "serving/prompts/prompt_tokens.h"

namespace valora::serving {
namespace {

// Checks that split_media() and render() will be able to parse their JSON.
Status check_tools(const ChatPrompt& chat) {
  if (!chat.tools.empty() && !OrderedJson::accept(chat.tools))
    return invalid("the tools are not JSON", "tools");
  for (const ChatMessage& message : chat.messages)
    for (const ToolCall& call : message.tool_calls)
      if (!OrderedJson::accept(call.arguments))
        return invalid("the arguments of a call are not JSON", "messages");
  return {};
}

}  // namespace

Status Frontend::check(const Prompt& prompt, std::span<const AppliedAdapter> adapters) const {
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) {
    if (ids->empty()) return invalid("the prompt is empty", "prompt");
    const Language& language = language_of(adapters);
    return check_tokens(*ids, *language.tokenizer, language.vocab, "prompt");
  }
  const auto* chat = std::get_if<ChatPrompt>(&prompt);
  if (!chat) return {};
  if (chat->messages.empty()) return invalid("\"messages\" is empty", "messages");
  VALORA_CHECK(check_tools(*chat));
  if (!spec_.image_token && has_media(*chat, MediaRef::Kind::kImage))
    return invalid(no_images_, "messages");
  if (!spec_.video_token && has_media(*chat, MediaRef::Kind::kVideo))
    return invalid(family_->no_videos, "messages");
  if (family_->excludes_mixed_media && has_media(*chat, MediaRef::Kind::kImage) &&
      has_media(*chat, MediaRef::Kind::kVideo))
    return invalid("this model takes images or videos in a conversation, not both", "messages");
  VALORA_CHECK(check_media(*chat, media_limits_));
  VALORA_CHECK(own_processors(*chat));
  return {};
}

Status Frontend::name_placeholders() {
  const auto named = [&](const std::string& placeholder) -> std::optional<int32_t> {
    const text::Tokenizer& tokenizer = *base_.tokenizer;
    const std::vector<int32_t> ids = tokenizer.encode(placeholder, /*add_special_tokens=*/false);
    if (ids.empty() || !tokenizer.is_added(ids.front())) return std::nullopt;
    return ids.front();
  };
  if (spec_.image_token == models::kTokenByName) {
    spec_.image_token = named(family_->image_placeholder);
    if (!spec_.image_token)
      return unprocessable(
          "tokenizer.json has no token of its own for " + family_->image_placeholder,
          "tokenizer.json");
  }
  // Without a token of their own, videos use the image placeholder.
  if (spec_.video_token == models::kTokenByName)
    spec_.video_token = named(family_->video_placeholder).value_or(*spec_.image_token);
  return {};
}

const std::string& Frontend::image_text() const {
  return family_->image_text.empty() ? family_->image_placeholder : family_->image_text;
}

// The placeholder ids in config.json and the placeholder texts in tokenizer.json must match.
Status Frontend::check_placeholders(const text::Tokenizer& tokenizer) const {
  const auto check = [&](const std::optional<int32_t>& token,
                         const std::string& placeholder) -> Status {
    if (!token) return {};
    const std::vector<int32_t> ids = tokenizer.encode(placeholder, /*add_special_tokens=*/false);
    if (std::find(ids.begin(), ids.end(), *token) != ids.end()) return {};
    return unprocessable("tokenizer.json does not encode " + placeholder +
                             " with the placeholder token " + std::to_string(*token) +
                             " of config.json",
                         "tokenizer.json");
  };
  VALORA_CHECK(check(spec_.image_token, image_text()));
  if (spec_.video_token == spec_.image_token) return {};
  return check(spec_.video_token, family_->video_placeholder);
}

// Longer text is certain to exceed max_tokens_.
Status Frontend::check_text(size_t bytes, const char* field, const Language& language) const {
  if (bytes <= language.longest_token * static_cast<size_t>(max_tokens_)) return {};
  return invalid("This model's maximum context length is " + std::to_string(max_tokens_) +
                     " tokens. However, the prompt has " + std::to_string(bytes) +
                     " bytes, which is more than that. Please reduce the length of the prompt.",
                 field);
}

}  // namespace valora::serving
