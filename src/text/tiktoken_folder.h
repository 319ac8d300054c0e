// The tokenizer of the first Qwen models (QWenTokenizer in their folders' remote code): a tiktoken
// vocabulary; its other parts are not in files.
#pragma once

#include <string>

#include "base/json/json.h"
#include "base/result.h"

namespace valora::text {

inline constexpr char kTiktokenFile[] = "qwen.tiktoken";

// The equivalent of tokenizer.json without the model: an object with "normalizer", "pre_tokenizer",
// "decoder" and "added_tokens". If config.json has a "visual" part, the added tokens include the
// tags of pictures and boxes. Box tags are not special: questions may contain them, and answers
// keep them. Refuses other tag names in tokenizer_config.json.
Result<Json> tiktoken_parts(const std::string& dir);

}  // namespace valora::text
