// Pre-tokenizer "Metaspace": spaces become a visible character that words begin with.
#pragma once

#include "text/pretokenizers/pretokenizer.h"

namespace valora::text {

Result<std::unique_ptr<const PreTokenizer>> make_metaspace_pretokenizer(const Json& json,
                                                                        const std::string& where);

}  // namespace valora::text
