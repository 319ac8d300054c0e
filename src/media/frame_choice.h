// A request's choice of a video's frames, for families that take no other settings of media.
#pragma once

#include <optional>

#include "media/processor.h"

namespace valora::media {

// The rule; absent: the family's own. kInvalidArgument: the request has other settings.
Result<std::optional<UniformSampling>> frame_choice(const ProcessorOverrides& asked);

}  // namespace valora::media
