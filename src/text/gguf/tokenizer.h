// The tokenizer and the chat template in the metadata of a GGUF file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/gguf.h"
#include "base/json.h"
#include "base/result.h"

namespace valora::text {

// What the tokenizer.json of the model has that the file was made from: byte-level BPE
// (tokenizer.ggml.model "gpt2") whose words tokenizer.ggml.pre names, or SentencePiece's BPE
// ("llama") with scores. kUnprocessable for other kinds, for words by an unknown name or by none,
// and for settings that would be ignored.
Result<Json> gguf_tokenizer(const GgufMetadata& metadata);

// bos_token, eos_token and the other special tokens by name, as read_special_tokens() gives them.
Result<Json> gguf_special_tokens(const GgufMetadata& metadata);

// The ids that end an answer: the end of a text, those of a turn and of a message, and the control
// token by which a known chat format ends a turn.
Result<std::vector<int64_t>> gguf_end_tokens(const GgufMetadata& metadata);

// tokenizer.chat_template; absent if there is none.
Result<std::optional<std::string>> gguf_chat_template(const GgufMetadata& metadata);

// A token of a SentencePiece vocabulary.
struct ScoredToken {
  std::string_view text;
  double score = 0;
  bool merges = true;  // whether texts become this token by merging
};
// [left, right] of all pairs of tokens whose texts make a token, by falling score of that token, as
// transformers' generate_merges() orders them.
Json merges_by_score(const std::vector<ScoredToken>& tokens);

}  // namespace valora::text
