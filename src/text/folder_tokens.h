// The added tokens that a model's folder lists outside tokenizer.json.
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

}  // namespace valora::text
