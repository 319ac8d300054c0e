#include "text/gguf/tokens.h"

#include <algorithm>
#include <array>

#include "base/text/unicode.h"
#include "text/gguf/tokenizer.h"
#include "text/json_fields.h"

namespace valora::text {
namespace {

// The named tokens, and the keys of their ids.
constexpr std::array<std::pair<const char*, const char*>, 7> kNamedTokens{
    {{"bos_token", "bos_token_id"},
     {"eos_token", "eos_token_id"},
     {"unk_token", "unknown_token_id"},
     {"sep_token", "seperator_token_id"},
     {"pad_token", "padding_token_id"},
     {"cls_token", "cls_token_id"},
     {"mask_token", "mask_token_id"}}};

}  // namespace

Result<GgufTokens> read_gguf_tokens(const GgufMetadata& metadata) {
  GgufTokens tokens;
  VALORA_TRY(model, metadata.text(gguf_key("model")));
  tokens.scored = model == "llama";
  if (!tokens.scored && model != "gpt2")
    return metadata.wrong(gguf_key("model"), "is " + in_quotes(model) +
                                                 ", which is not supported, only gpt2 (byte-level "
                                                 "BPE) and llama (SentencePiece's BPE)");
  VALORA_TRY(texts, metadata.texts(gguf_key("tokens")));
  if (texts.empty()) return metadata.wrong(gguf_key("tokens"), "is missing");
  VALORA_TRY(kinds, metadata.numbers(gguf_key("token_type")));
  if (!kinds.empty() && kinds.size() != texts.size())
    return metadata.wrong(gguf_key("token_type"), "must have a number for each token");
  tokens.kinds.assign(texts.size(), GgufTokenKind::kNormal);
  for (size_t id = 0; id < texts.size(); ++id) {
    const std::string token = "has the token " + std::to_string(id);
    if (!is_valid_utf8(texts[id]))
      return metadata.wrong(gguf_key("tokens"), token + ", which is not UTF-8");
    if (kinds.empty()) continue;
    if (!(kinds[id] >= 1 && kinds[id] <= 6))
      return metadata.wrong(gguf_key("token_type"), token + " of an unknown type");
    tokens.kinds[id] = static_cast<GgufTokenKind>(static_cast<int>(kinds[id]));
  }
  tokens.texts = std::move(texts);
  return tokens;
}

// The id of a named token; absent if the file has none.
Result<std::optional<int64_t>> gguf_token_id(const GgufMetadata& metadata, const std::string& key,
                                             size_t tokens) {
  if (!metadata.has(key)) return std::optional<int64_t>();
  VALORA_TRY(id, metadata.integer(key));
  // Converters write the largest number to mean "none".
  if (id == UINT32_MAX || id == -1) return std::optional<int64_t>();
  if (id < 0 || static_cast<size_t>(id) >= tokens)
    return metadata.wrong(key, "is outside the vocabulary");
  return std::optional(id);
}

Result<Json> gguf_special_tokens(const GgufMetadata& metadata) {
  VALORA_TRY(texts, metadata.texts(gguf_key("tokens")));
  Json named = Json::object();
  for (const auto& [name, key] : kNamedTokens) {
    VALORA_TRY(id, gguf_token_id(metadata, gguf_key(key), texts.size()));
    if (id) named[name] = to_valid_utf8(texts[static_cast<size_t>(*id)]);
  }
  return named;
}

Result<std::vector<int64_t>> gguf_end_tokens(const GgufMetadata& metadata) {
  VALORA_TRY(tokens, read_gguf_tokens(metadata));
  std::vector<int64_t> ends;
  const auto add = [&](int64_t id) {
    if (std::ranges::find(ends, id) == ends.end()) ends.push_back(id);
  };
  for (const char* key : {"eos_token_id", "eot_token_id", "eom_token_id"}) {
    VALORA_TRY(id, gguf_token_id(metadata, gguf_key(key), tokens.texts.size()));
    if (id) add(*id);
  }
  constexpr std::array kTurnEnds = {"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>"};
  for (size_t id = 0; id < tokens.texts.size(); ++id)
    if (tokens.kinds[id] == GgufTokenKind::kControl &&
        std::ranges::find(kTurnEnds, tokens.texts[id]) != kTurnEnds.end())
      add(static_cast<int64_t>(id));
  return ends;
}

Result<std::optional<std::string>> gguf_chat_template(const GgufMetadata& metadata) {
  constexpr char kKey[] = "tokenizer.chat_template";
  if (!metadata.has(kKey)) return std::optional<std::string>();
  VALORA_TRY(text, metadata.text(kKey));
  return std::optional(std::move(text));
}

}  // namespace valora::text
