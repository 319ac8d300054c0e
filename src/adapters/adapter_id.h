// The number of an adapter, wherever one is named by a number.
#pragma once

#include <cstdint>

namespace valora::adapters {

using AdapterId = int32_t;  // of one load of one adapter; never used again

}  // namespace valora::adapters
