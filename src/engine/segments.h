// What a token's adapters add to the weights in use (DESIGN §3).
#pragma once

#include <span>
#include <vector>

#include "engine/loaded_adapter.h"
#include "models/batch.h"

namespace valora {

// Tokens [begin, end) want the base model with `uses` on top; the weights in use are the base's
// with `merged` (or null) merged at coefficient 1. Appends the difference: nothing for a token that
// wants just these weights. Neighbours share a segment. To be called in ascending order of tokens.
void append_segments(std::span<const AppliedAdapter> uses, const LoadedAdapter* merged,
                     int64_t begin, int64_t end, std::vector<models::Segment>& segments);

}  // namespace valora
