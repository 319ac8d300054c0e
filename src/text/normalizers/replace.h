// Normalizer "Replace": replaces matches of a pattern by a text.
#pragma once

#include "text/normalizers/normalizer.h"

namespace valora::text {

Result<std::unique_ptr<const Normalizer>> make_replace(const Json& json, const std::string& where);

}  // namespace valora::text
