// What a model's folder says about its tokenizer outside tokenizer.json.
#pragma once

#include <string>
#include <vector>

#include "base/files/input_folder.h"
#include "base/json/json.h"
#include "base/result.h"
#include "text/added_tokens.h"

namespace valora::text {

// The tokens that transformers' fast tokenizers add to those of tokenizer.json, in the same order:
// "added_tokens_decoder" of tokenizer_config.json by id, then the named special tokens (bos_token
// …), additional_special_tokens and extra_special_tokens that are not known yet. Without
// added_tokens_decoder, special_tokens_map.json and added_tokens.json are read as well. A token of
// tokenizer.json may get other flags. Ids are those in the files; -1 if there is none. tokenizer:
// the content of tokenizer.json.
Result<std::vector<AddedToken>> read_folder_tokens(const InputFolder& folder,
                                                   const Json& tokenizer);

// The tokenizer of the first Qwen models (QWenTokenizer in their folders' remote code): a tiktoken
// vocabulary; its other parts are not in files.
inline constexpr char kTiktokenFile[] = "qwen.tiktoken";

// The equivalent of tokenizer.json without the model: an object with "normalizer", "pre_tokenizer",
// "decoder" and "added_tokens". If config.json has a "visual" part, the added tokens include the
// tags of pictures and boxes. Box tags are not special: questions may contain them, and answers
// keep them. Refuses other tag names in tokenizer_config.json.
Result<Json> tiktoken_parts(const std::string& dir);

}  // namespace valora::text
