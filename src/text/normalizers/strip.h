// Normalizer "Strip": removes white space at the ends.
#pragma once

#include "text/normalizers/normalizer.h"

namespace valora::text {

Result<std::unique_ptr<const Normalizer>> make_strip(const Json& json, const std::string& where);

}  // namespace valora::text
