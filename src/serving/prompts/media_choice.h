// From the settings of a request's media to those of the processor that prepares them.
#pragma once

#include "api/media_settings.h"
#include "base/result.h"
#include "media/processor.h"

namespace valora::serving {

// Of one image or video of a conversation. part: its own settings; they go before the request's.
// frame_list: the video is a list of frames, which are all kept. kInvalidArgument or
// kNotImplemented: a clause about settings that exclude each other, or that its kind does not take.
Result<media::ProcessorOverrides> overrides_of(const MediaSettings& part,
                                               const MediaSettings& request, media::MediaKind kind,
                                               bool frame_list);

}  // namespace valora::serving
