// Mistral's tokenizers that releases of transformers before 5 saved have an older expression of
// words. With "fix_mistral_regex": true in tokenizer_config.json, transformers (4.57.3 and later)
// puts the newer one in its place.
#pragma once

#include "base/files/input_folder.h"
#include "base/json/json.h"

namespace valora::text {

// tokenizer: the folder's tokenizer.json, whose "pre_tokenizer" changes where transformers 5.24
// changes it: only with the key, a model_type of Mistral's in config.json, a transformers_version
// below 5.0.0 or none, and more than 100,000 tokens.
Status mend_mistral_words(const InputFolder& folder, Json& tokenizer);

}  // namespace valora::text
