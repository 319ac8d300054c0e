#include <algorithm>

#include "server/openai/responses.h"
#include "server/openai/utf8.h"

namespace valora::server {
namespace {

// JSON has no infinity; vLLM writes -9999 too.
double finite(float logprob) { return logprob >= -9999.0f ? double(logprob) : -9999.0; }

OrderedJson token_json(const TokenLogprob& token) {
  OrderedJson bytes = OrderedJson::array();
  for (const char c : token.bytes) bytes.push_back(static_cast<uint8_t>(c));
  OrderedJson out;
  out["token"] = with_replacements(token.bytes);
  out["logprob"] = finite(token.logprob);
  out["bytes"] = std::move(bytes);
  return out;
}

// Maps token text to logprob, including the chosen token. Of tokens with equal text, the likelier
// one.
OrderedJson top_by_text(const TokenOutput& token) {
  OrderedJson top = OrderedJson::object();
  const auto add = [&top](const TokenLogprob& candidate) {
    const std::string text = with_replacements(candidate.bytes);
    const double logprob = finite(candidate.logprob);
    if (!top.contains(text) || top[text].get<double>() < logprob) top[text] = logprob;
  };
  for (const TokenLogprob& candidate : token.top) add(candidate);
  add(token.chosen);
  return top;
}

}  // namespace

OrderedJson chat_logprobs(const std::vector<TokenOutput>& tokens) {
  OrderedJson content = OrderedJson::array();
  for (const TokenOutput& token : tokens) {
    OrderedJson entry = token_json(token.chosen);
    OrderedJson top = OrderedJson::array();
    for (const TokenLogprob& candidate : token.top) top.push_back(token_json(candidate));
    entry["top_logprobs"] = std::move(top);
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}};
}

OrderedJson completion_logprobs(const std::vector<TokenOutput>& tokens, size_t text_offset) {
  OrderedJson offsets = OrderedJson::array(), texts = OrderedJson::array();
  OrderedJson logprobs = OrderedJson::array(), tops = OrderedJson::array();
  for (const TokenOutput& token : tokens) {
    const std::string text = with_replacements(token.chosen.bytes);
    offsets.push_back(text_offset);
    text_offset += count_characters(text);
    texts.push_back(text);
    logprobs.push_back(finite(token.chosen.logprob));
    tops.push_back(top_by_text(token));
  }
  OrderedJson out;
  out["text_offset"] = std::move(offsets);
  out["token_logprobs"] = std::move(logprobs);
  out["tokens"] = std::move(texts);
  out["top_logprobs"] = std::move(tops);
  return out;
}

size_t characters(const std::vector<TokenOutput>& tokens) {
  size_t count = 0;
  for (const TokenOutput& token : tokens)
    count += count_characters(with_replacements(token.chosen.bytes));
  return count;
}

}  // namespace valora::server
