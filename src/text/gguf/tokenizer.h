// The tokenizer and the chat template from a GGUF file's metadata.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "base/result.h"
#include "base/tensors/gguf.h"

namespace valora::text {

// The tokenizer.json of the original model: byte-level BPE (tokenizer.ggml.model "gpt2") with the
// word pattern named by tokenizer.ggml.pre, or SentencePiece's BPE ("llama") with scores.
// kUnprocessable for other kinds, for a missing or unknown word pattern, and for settings that
// would be ignored. more: a special token that follows those of the file; empty: none.
Result<Json> gguf_tokenizer(const GgufMetadata& metadata, const std::string& more = {});

// bos_token, eos_token and the other special tokens by name, as from read_special_tokens().
Result<Json> gguf_special_tokens(const GgufMetadata& metadata);

// The ids that end an answer: end of text, of a turn and of a message, and the control token with
// which a known chat format ends a turn.
Result<std::vector<int64_t>> gguf_end_tokens(const GgufMetadata& metadata);

// tokenizer.chat_template; absent if the file has none.
Result<std::optional<std::string>> gguf_chat_template(const GgufMetadata& metadata);

// A token in a SentencePiece vocabulary.
struct ScoredToken {
  std::string_view text;
  double score = 0;
  bool merges = true;  // texts can become this token by merging
};
// [left, right] for all pairs of tokens whose joined text is a token, by descending score of that
// token, in the order of transformers' generate_merges().
Json merges_by_score(const std::vector<ScoredToken>& tokens);

}  // namespace valora::text
