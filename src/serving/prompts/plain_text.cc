#include "serving/prompts/plain_text.h"

#include <utility>

namespace valora::serving {

std::string take_last_text(const text::Tokenizer& tokenizer, std::vector<int32_t>& tokens) {
  size_t begin = tokens.size();
  while (begin > 0 && !tokenizer.is_added(tokens[begin - 1])) --begin;
  std::string text;
  for (size_t i = begin; i < tokens.size(); ++i) text += tokenizer.token_bytes(tokens[i]);
  tokens.resize(begin);
  return text;
}

Result<PlainTexts> marked_plain(std::vector<std::string> texts,
                                const text::ContentMarks& content_marks) {
  std::vector<text::ChatMessage> message(1);
  for (std::string& text : texts)
    message[0].parts.push_back({text::ChatPart::Kind::kText, std::move(text)});
  OrderedJson no_tools;
  Json no_variables;
  PlainTexts plain;
  VALORA_TRY(mark, content_marks.apply(message, no_tools, no_variables));
  plain.mark = std::move(mark);
  for (text::ChatPart& part : message[0].parts) plain.texts.push_back(std::move(part.text));
  return plain;
}

}  // namespace valora::serving
