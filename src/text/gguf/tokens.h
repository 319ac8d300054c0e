// The tokens of a GGUF file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/tensors/gguf.h"

namespace valora::text {

// The metadata key of a tokenizer setting.
inline std::string gguf_key(const char* name) { return std::string("tokenizer.ggml.") + name; }

// Kinds of tokens, as numbered in the format.
enum class GgufTokenKind : int { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

struct GgufTokens {
  std::vector<std::string_view> texts;  // UTF-8; in the file's memory
  std::vector<GgufTokenKind> kinds;     // one per token
  bool scored = false;                  // SentencePiece tokens; otherwise byte-level BPE
};

// kUnprocessable for another kind of tokenizer, and for lists of inconsistent lengths.
Result<GgufTokens> read_gguf_tokens(const GgufMetadata& metadata);

// The id of a named token, below `tokens`; absent if the file has none.
Result<std::optional<int64_t>> gguf_token_id(const GgufMetadata& metadata, const std::string& key,
                                             size_t tokens);

}  // namespace valora::text
