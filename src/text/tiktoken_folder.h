// The tokenizer of Qwen's first models (QWenTokenizer in the code that their folders bring along):
// a vocabulary of tiktoken, whose other parts are not in files.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"

namespace valora::text {

inline constexpr char kTiktokenFile[] = "qwen.tiktoken";

// What tokenizer.json would say of it besides the model: an object with "normalizer",
// "pre_tokenizer", "decoder" and "added_tokens". The tags of pictures and boxes are among the added
// tokens if config.json has a "visual" part. Those around boxes are not special: questions may have
// them, and answers keep them. Refuses tags of other names in tokenizer_config.json.
Result<Json> tiktoken_parts(const std::string& dir);

}  // namespace valora::text
