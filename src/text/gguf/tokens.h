// The tokens of a GGUF file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/gguf.h"
#include "base/result.h"

namespace valora::text {

// The key of a setting of the tokenizer.
inline std::string gguf_key(const char* name) { return std::string("tokenizer.ggml.") + name; }

// Kinds of tokens, as the format numbers them.
enum class GgufTokenKind : int { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

struct GgufTokens {
  std::vector<std::string_view> texts;  // UTF-8; in the file's memory
  std::vector<GgufTokenKind> kinds;     // of each
  bool scored = false;                  // SentencePiece's, else byte-level BPE's
};

// kUnprocessable for a tokenizer of another kind, and for lists that do not fit each other.
Result<GgufTokens> read_gguf_tokens(const GgufMetadata& metadata);

// The id of a named token, of so many; absent if the file has none.
Result<std::optional<int64_t>> gguf_token_id(const GgufMetadata& metadata, const std::string& key,
                                             size_t tokens);

}  // namespace valora::text
