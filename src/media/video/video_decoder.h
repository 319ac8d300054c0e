// The decoder of live streams: software, or a device of this machine that libav can decode on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace valora::media {

class HardwareDevice;  // hardware_device.h

// "software", "auto", and the types of devices that this libav has decoders for.
std::vector<std::string> video_decoders();

// Opens the device that all streams share. `text` is one of video_decoders(); a type may be
// followed by a device in libav's words: vaapi:/dev/dri/renderD128. Null for software, and for auto
// if no type opens, which is logged. kInvalidArgument: the type is unknown. kUnavailable: the
// device cannot be opened.
Result<std::shared_ptr<const HardwareDevice>> open_video_decoder(const std::string& text);

}  // namespace valora::media
