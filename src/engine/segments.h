// What a token's adapters add to the weights in use.
#pragma once

#include <span>

#include "engine/loaded_adapter.h"
#include "ops/lora.h"

namespace valora {

// Tokens [begin, end) want the base model with `uses` on top; the weights in use are the base's
// with `merged` (or null) merged at coefficient 1. Appends the difference: nothing for a token that
// wants just these weights. To be called in ascending order of tokens, whose neighbours then share
// segments.
void append_segments(std::span<const AppliedAdapter> uses, const LoadedAdapter* merged,
                     int64_t begin, int64_t end, ops::LoraBatch& lora);

}  // namespace valora
