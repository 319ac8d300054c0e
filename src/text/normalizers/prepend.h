// Normalizer "Prepend": puts a text before every non-empty text.
#pragma once

#include "text/normalizers/normalizer.h"

namespace valora::text {

Result<std::unique_ptr<const Normalizer>> make_prepend(const Json& json, const std::string& where);

}  // namespace valora::text
