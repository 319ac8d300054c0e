// The difference between the adapters that rows need and the weights in use.
#pragma once

#include <span>
#include <vector>

#include "serving/batch/batch_message.h"

namespace valora::serving {

// Rows [begin, end) need the base model plus `uses`; the weights in use are the base model plus
// `merged` (may be null) at coefficient 1. Appends the adapters that make up the difference on the
// decoder, if there is any.
void append_difference(std::span<const AppliedAdapter> uses, const LoadedAdapter* merged,
                       int64_t begin, int64_t end, std::vector<AdapterRows>& difference);

}  // namespace valora::serving
