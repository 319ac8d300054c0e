// Pre-tokenizer "Metaspace": replaces spaces by a visible character with which words begin.
#pragma once

#include "text/pretokenizers/pretokenizer.h"

namespace valora::text {

Result<std::unique_ptr<const PreTokenizer>> make_metaspace_pretokenizer(const Json& json,
                                                                        const std::string& where);

}  // namespace valora::text
