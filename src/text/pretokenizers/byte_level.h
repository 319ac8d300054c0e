// Pre-tokenizer "ByteLevel": an optional leading space, GPT-2's word pattern, then one character
// per byte.
#pragma once

#include "text/pretokenizers/pretokenizer.h"

namespace valora::text {

Result<std::unique_ptr<const PreTokenizer>> make_byte_level_pretokenizer(const Json& json,
                                                                         const std::string& where);

}  // namespace valora::text
