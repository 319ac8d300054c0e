// The number that identifies a loaded adapter.
#pragma once

#include <cstdint>

namespace valora::adapters {

using AdapterId = int32_t;  // one per load of an adapter; never reused

}  // namespace valora::adapters
