// The parts of an input that are encoded on their own.
#pragma once

#include "media/processors/processor.h"

namespace valora::media {

// Sets `parts`, if the input is separable and has several. Their digests cover all that their
// embeddings depend on.
void cut_parts(VisualInput& input);

}  // namespace valora::media
