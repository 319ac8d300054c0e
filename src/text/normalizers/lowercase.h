// Normalizer "Lowercase": every character's full lower case, regardless of its neighbours.
#pragma once

#include "text/normalizers/normalizer.h"

namespace valora::text {

Result<std::unique_ptr<const Normalizer>> make_lowercase(const Json& json,
                                                         const std::string& where);

}  // namespace valora::text
