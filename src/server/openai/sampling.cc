#include "server/openai/generation_fields.h"

#include <fmt/format.h>

#include <charconv>

#include "base/text/strings.h"
#include "server/openai/fields.h"
#include "server/openai/utf8.h"

namespace valora::server {
namespace {

constexpr int kMaxSequences = 128;
constexpr size_t kMaxStops = 16;
constexpr size_t kMaxStopCharacters = 1024;  // per stop string
constexpr size_t kMaxStopTokens = 128;
constexpr size_t kMaxBiases = 1024;
constexpr size_t kMaxBadWords = 128;
constexpr double kMaxRepetitionPenalty = 1e6;

Result<std::vector<std::string>> parse_stop(const Json& body) {
  VALORA_TRY(stop, string_or_strings(body, "stop"));
  if (stop.size() > kMaxStops)
    return invalid(fmt::format("\"stop\" takes at most {} strings, not {}", kMaxStops, stop.size()),
                   "stop");
  for (const std::string& text : stop) {
    if (text.empty()) return invalid("\"stop\" can't contain an empty string", "stop");
    if (const size_t characters = count_characters(text); characters > kMaxStopCharacters)
      return invalid(fmt::format("\"stop\" takes strings of at most {} characters, not {}",
                                 kMaxStopCharacters, characters),
                     "stop");
  }
  return stop;
}

Result<std::vector<int32_t>> parse_stop_tokens(const Json& body) {
  const Json& value = member(body, "stop_token_ids");
  if (value.is_null()) return std::vector<int32_t>{};
  VALORA_TRY(ids, integers(value, "stop_token_ids"));
  if (ids.size() > kMaxStopTokens)
    return invalid(fmt::format("\"stop_token_ids\" takes at most {} ids", kMaxStopTokens),
                   "stop_token_ids");
  return ids;
}

Result<std::vector<std::pair<int32_t, float>>> parse_logit_bias(const Json& body) {
  std::vector<std::pair<int32_t, float>> biases;
  const Json& value = member(body, "logit_bias");
  if (value.is_null()) return biases;
  if (!value.is_object())
    return invalid("\"logit_bias\" must be an object from token ids to numbers", "logit_bias");
  if (value.size() > kMaxBiases)
    return invalid(
        fmt::format("\"logit_bias\" takes at most {} tokens, not {}", kMaxBiases, value.size()),
        "logit_bias");
  for (const auto& [key, bias] : value.items()) {
    int32_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc{} || end != key.data() + key.size() || id < 0)
      return invalid(
          fmt::format("\"logit_bias\" has the key \"{}\", which is not a token id", shortened(key)),
          "logit_bias");
    if (!bias.is_number() || bias.get<double>() < -100 || bias.get<double>() > 100)
      return invalid(
          fmt::format("\"logit_bias\" of token {} must be a number from -100 to 100", id),
          "logit_bias");
    biases.emplace_back(id, bias.get<float>());
  }
  return biases;
}

Result<std::vector<int32_t>> parse_allowed_tokens(const Json& body) {
  const Json& value = member(body, "allowed_token_ids");
  if (value.is_null()) return std::vector<int32_t>{};
  VALORA_TRY(ids, integers(value, "allowed_token_ids"));
  if (ids.empty()) return invalid("\"allowed_token_ids\" is empty", "allowed_token_ids");
  return ids;
}

Result<std::vector<std::string>> parse_bad_words(const Json& body) {
  VALORA_TRY(words, string_or_strings(body, "bad_words"));
  if (words.size() > kMaxBadWords)
    return invalid(
        fmt::format("\"bad_words\" takes at most {} words, not {}", kMaxBadWords, words.size()),
        "bad_words");
  for (const std::string& word : words)
    if (word.empty() || count_characters(word) > kMaxStopCharacters)
      return invalid(
          fmt::format("\"bad_words\" takes words of 1 to {} characters", kMaxStopCharacters),
          "bad_words");
  return words;
}

}  // namespace

Result<SamplingParams> parse_sampling(const Json& body) {
  SamplingParams sampling;
  VALORA_TRY(temperature, number_in(body, "temperature", {0, 2}));
  VALORA_TRY(top_p, number_in(body, "top_p", {0, 1}));
  VALORA_TRY(top_k, integer_in(body, "top_k", -1, INT32_MAX));
  VALORA_TRY(min_p, number_in(body, "min_p", {0, 1}));
  VALORA_TRY(repetition_penalty,
             number_in(body, "repetition_penalty", {0, kMaxRepetitionPenalty, true}));
  VALORA_TRY(presence_penalty, number_in(body, "presence_penalty", {-2, 2}));
  VALORA_TRY(frequency_penalty, number_in(body, "frequency_penalty", {-2, 2}));
  VALORA_TRY(n, integer_in(body, "n", 1, kMaxSequences));
  VALORA_TRY(min_tokens, integer_in(body, "min_tokens", 0, INT32_MAX));
  VALORA_TRY(seed, optional_field<int64_t>(body, "seed"));
  VALORA_TRY(ignore_eos, flag(body, "ignore_eos", false));
  VALORA_TRY(skip_special_tokens, flag(body, "skip_special_tokens", true));
  VALORA_TRY(include_stop, flag(body, "include_stop_str_in_output", false));
  VALORA_TRY(stop, parse_stop(body));
  VALORA_TRY(stop_token_ids, parse_stop_tokens(body));
  VALORA_TRY(logit_bias, parse_logit_bias(body));
  VALORA_TRY(allowed, parse_allowed_tokens(body));
  VALORA_TRY(bad_words, parse_bad_words(body));
  sampling.allowed_token_ids = std::move(allowed);
  sampling.bad_words = std::move(bad_words);
  sampling.temperature = temperature;
  sampling.top_p = top_p;
  sampling.top_k = top_k;
  sampling.min_p = min_p;
  sampling.repetition_penalty = repetition_penalty;
  sampling.presence_penalty = presence_penalty.value_or(0);
  sampling.frequency_penalty = frequency_penalty.value_or(0);
  sampling.n = n.value_or(1);
  sampling.min_tokens = min_tokens.value_or(0);
  sampling.seed = seed;
  sampling.ignore_eos = ignore_eos;
  sampling.skip_special_tokens = skip_special_tokens;
  sampling.include_stop_str_in_output = include_stop;
  sampling.stop = std::move(stop);
  sampling.stop_token_ids = std::move(stop_token_ids);
  sampling.logit_bias = std::move(logit_bias);
  return sampling;
}

}  // namespace valora::server
