// Prompts with media that are encoded in parts (VisualInput::parts): each part has its own place in
// the cache of embeddings and in the keys of KV blocks. So a video that grew by a frame, or a
// picture of which a tile changed, is computed from the first new part on.
#pragma once

#include <vector>

#include "memory/identity.h"
#include "models/spec/positions.h"

namespace valora::serving {

// Cuts spans into one for each part that they show. Call once the positions are known.
void cut_spans(std::vector<models::VisualSpan>& visual);

// The identity of what the spans show, ascending. A part counts with its place in its input and the
// time of a temporal patch, on which the positions of its tokens depend, too.
std::vector<memory::MediaSpan> media_spans(const std::vector<models::VisualSpan>& visual);

}  // namespace valora::serving
