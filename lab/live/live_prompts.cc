#include "lab/live/live_prompts.h"

namespace valora::bench {
namespace {

constexpr int32_t kTokens = 256;  // ids that every vocabulary contains

// One word per token, different for each token id.
std::string words_of(std::span<const int32_t> tokens) {
  std::string text;
  for (const int32_t token : tokens) {
    if (!text.empty()) text += ' ';
    text += static_cast<char>('a' + (token % kTokens) % 26);
    text += static_cast<char>('a' + (token % kTokens) / 26);
  }
  return text;
}

}  // namespace

ChatMessage LivePrompts::question(size_t index, std::span<const int32_t> tokens) const {
  ChatMessage message{.role = "user", .parts = {}};
  const size_t owner = arrivals_[index].pictures_of.value_or(index);
  for (int i = 0; i < arrivals_[index].pictures; ++i)
    message.parts.emplace_back(MediaRef{MediaRef::Kind::kImage, options_.picture(owner, i)});
  message.parts.emplace_back(words_of(tokens));
  return message;
}

Prompt LivePrompts::make(size_t index, const LiveAnswer* before) {
  const sim::Arrival& arrival = arrivals_[index];
  Said& said = histories_[index];
  size_t old = 0;  // prompt tokens already said in earlier turns
  if (before) {
    const sim::Arrival& last = arrivals_[*arrival.previous];
    said = std::move(histories_[*arrival.previous]);
    old = last.prompt.size() + static_cast<size_t>(last.answer_tokens);
  }
  const std::span<const int32_t> fresh =
      std::span(arrival.prompt).subspan(std::min(old, arrival.prompt.size()));
  if (arrival.pictures == 0 && said.messages.empty()) {
    if (before) said.tokens.insert(said.tokens.end(), before->tokens.begin(), before->tokens.end());
    for (const int32_t token : fresh) said.tokens.push_back(token % kTokens);
    return said.tokens;
  }
  if (before) said.messages.push_back({.role = "assistant", .parts = {before->text}});
  // The pictures stand in for the first tokens of the prompt.
  const size_t of_pictures = std::min(fresh.size(), static_cast<size_t>(arrival.picture_tokens));
  said.messages.push_back(question(index, fresh.subspan(of_pictures)));
  return ChatPrompt{
      .messages = said.messages, .add_generation_prompt = {}, .template_variables = {}};
}

}  // namespace valora::bench
