#include "api/testing/reply.h"

#include <utility>

namespace valora::testing {

Reply say(std::string text, const std::vector<float>& logprobs) {
  OutputChunk chunk{.text = std::move(text), .finish = Finish{}};
  for (const float logprob : logprobs) chunk.tokens.push_back({{0, "", logprob}, {}});
  Reply reply{.chunks = {std::move(chunk)}};
  reply.info.usage.prompt_tokens = 10;
  return reply;
}

std::string text_of(const Prompt& prompt) {
  if (const auto* text = std::get_if<std::string>(&prompt)) return *text;
  std::string text;
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) {
    for (const int32_t id : *ids) text += (text.empty() ? "" : " ") + std::to_string(id);
    return text;
  }
  for (const ContentPart& part : std::get<ChatPrompt>(prompt).messages.back().parts)
    if (const auto* piece = std::get_if<std::string>(&part)) text += *piece;
  return text;
}

std::vector<std::string> split_tokens(const std::string& text) {
  std::vector<std::string> tokens;
  for (const char c : text) {
    if (tokens.empty() || c == ' ') tokens.emplace_back();
    tokens.back() += c;
  }
  return tokens;
}

int32_t token_id(const std::string& token) {
  uint32_t hash = 2166136261u;
  for (const char c : token) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return static_cast<int32_t>(hash % 30000);
}

}  // namespace valora::testing
