// Live videos from the network and from files, which libav takes apart and decodes.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "media/video/live_video.h"

namespace valora::media {

// As LiveVideo::open(), for a URL that the policy allows and that names no camera of this machine.
Result<std::unique_ptr<LiveVideo>> open_libav_video(const std::string& url,
                                                    const FetchPolicy& policy, const Limits& limits,
                                                    const LiveVideo::Reading& reading,
                                                    std::stop_token stop);

}  // namespace valora::media
