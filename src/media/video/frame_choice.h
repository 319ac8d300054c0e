// A request's choice of video frames, for model families without other media settings.
#pragma once

#include <optional>

#include "media/processors/processor.h"

namespace valora::media {

// The requested rule; absent: the family's own. kInvalidArgument if the request has other settings.
Result<std::optional<UniformSampling>> frame_choice(const ProcessorOverrides& asked);

}  // namespace valora::media
