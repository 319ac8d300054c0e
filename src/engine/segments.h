// LoRA segments of a token range: the difference between the adapters that it needs and the weights
// in use.
#pragma once

#include <span>

#include "ops/lora.h"
#include "serving/adapters/loaded_adapter.h"

namespace valora {

// Tokens [begin, end) need the base model plus `uses`; the weights in use are the base model plus
// `merged` (may be null) at coefficient 1. Appends the segments of the difference; none if there is
// no difference. Changes of outputs, which no merge has, are those of `uses`. Call it in ascending
// order of tokens, so that adjacent ranges share segments.
void append_segments(std::span<const serving::AppliedAdapter> uses,
                     const serving::LoadedAdapter* merged, int64_t begin, int64_t end,
                     ops::LoraBatch& lora);

}  // namespace valora
