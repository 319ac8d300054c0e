#include <algorithm>
#include <cmath>
#include <numeric>

#include "server/openai/responses.h"
#include "server/openai/utf8.h"

namespace valora::server {
namespace {

// JSON has no infinity; vLLM writes -9999 too.
double finite(float logprob) { return logprob >= -9999.0f ? double(logprob) : -9999.0; }

OrderedJson token_json(const TokenLogprob& token) {
  OrderedJson bytes = OrderedJson::array();
  for (const char c : token.bytes) bytes.push_back(static_cast<uint8_t>(c));
  OrderedJson out = OrderedJson::object();
  out["token"] = with_replacements(token.bytes);
  out["logprob"] = finite(token.logprob);
  out["bytes"] = std::move(bytes);
  return out;
}

// Maps token text to log probability, including the chosen token. Among tokens with equal text, the
// likeliest counts.
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

TokenOutput label_token(const Classification& classification, int top) {
  const auto token = [&](int i) {
    return TokenLogprob{-1, classification.labels[i], std::log(classification.probs[i])};
  };
  std::vector<int> order(classification.labels.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return classification.probs[a] > classification.probs[b]; });
  order.resize(std::min(order.size(), static_cast<size_t>(top)));
  TokenOutput out{token(classification.best), {}};
  for (const int i : order) out.top.push_back(token(i));
  return out;
}

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

OrderedJson completion_logprobs(const std::vector<TokenOutput>* prompt,
                                const std::vector<TokenOutput>& tokens, size_t text_offset) {
  OrderedJson offsets = OrderedJson::array(), texts = OrderedJson::array();
  OrderedJson logprobs = OrderedJson::array(), tops = OrderedJson::array();
  const auto add = [&](const TokenOutput& token, bool scored) {
    const std::string text = with_replacements(token.chosen.bytes);
    offsets.push_back(text_offset);
    text_offset += count_characters(text);
    texts.push_back(text);
    logprobs.push_back(scored ? OrderedJson(finite(token.chosen.logprob)) : OrderedJson());
    tops.push_back(scored ? top_by_text(token) : OrderedJson());
  };
  if (prompt)
    for (const TokenOutput& token : *prompt) add(token, &token != &prompt->front());
  for (const TokenOutput& token : tokens) add(token, true);
  OrderedJson out = OrderedJson::object();
  out["text_offset"] = std::move(offsets);
  out["token_logprobs"] = std::move(logprobs);
  out["tokens"] = std::move(texts);
  out["top_logprobs"] = std::move(tops);
  return out;
}

OrderedJson prompt_logprobs(const std::vector<TokenOutput>& tokens) {
  OrderedJson out = OrderedJson::array();
  for (const TokenOutput& token : tokens) {
    OrderedJson entry = OrderedJson::object();
    const auto add = [&entry](const TokenLogprob& candidate) {
      OrderedJson& place = entry[std::to_string(candidate.id)];
      place["logprob"] = finite(candidate.logprob);
      place["rank"] = candidate.rank;
      place["decoded_token"] = with_replacements(candidate.bytes);
    };
    add(token.chosen);
    for (const TokenLogprob& candidate : token.top) add(candidate);
    out.push_back(out.empty() ? OrderedJson() : std::move(entry));
  }
  return out;
}

size_t characters(const std::vector<TokenOutput>& tokens) {
  size_t count = 0;
  for (const TokenOutput& token : tokens)
    count += count_characters(with_replacements(token.chosen.bytes));
  return count;
}

}  // namespace valora::server
