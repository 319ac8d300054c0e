#include "serving/prompts/prompt_tokens.h"

#include <algorithm>

#include "base/log/log.h"
#include "base/text/strings.h"

namespace valora::serving {

Status check_tokens(std::span<const int32_t> tokens, const text::Tokenizer& tokenizer,
                    int64_t vocab, const char* field, std::span<const int32_t> placeholders) {
  for (const int32_t id : tokens) {
    if (id >= 0 && (id < vocab || std::ranges::find(placeholders, id) != placeholders.end()))
      continue;
    const std::string* text = tokenizer.token_text(id);
    return invalid("token id " + std::to_string(id) +
                       (text ? " (" + shortened(*text, 80) + ")" : std::string()) +
                       " is out of vocabulary (the model has embeddings of " +
                       std::to_string(vocab) + " tokens)",
                   field);
  }
  return {};
}

Status check_vocabulary(const text::Tokenizer& tokenizer, int64_t vocab,
                        const std::string& folder) {
  const Status around =
      check_tokens(tokenizer.encode("", /*add_special_tokens=*/true), tokenizer, vocab, "");
  if (!around.ok())
    return unprocessable(
        folder + "/tokenizer.json puts a token around every prompt: " + around.error().message,
        folder);
  if (tokenizer.vocab_size() > vocab)
    spdlog::warn(
        "{}: the tokenizer has ids up to {}, but the model has embeddings of {} tokens; prompts "
        "with others are refused",
        folder, tokenizer.vocab_size() - 1, vocab);
  return {};
}

}  // namespace valora::serving
