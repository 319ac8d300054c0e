// Translates the media settings of a request to overrides of the media processor.
#pragma once

#include "api/media_settings.h"
#include "base/result.h"
#include "media/processors/processor.h"

namespace valora::serving {

// For one image or video of a conversation. part: its own settings, which take precedence over the
// request's. frame_list: the video is a list of frames, which are all kept. kInvalidArgument or
// kNotImplemented, as a clause, for settings that exclude each other or do not apply to its kind.
Result<media::ProcessorOverrides> overrides_of(const MediaSettings& part,
                                               const MediaSettings& request, media::MediaKind kind,
                                               bool frame_list);

}  // namespace valora::serving
