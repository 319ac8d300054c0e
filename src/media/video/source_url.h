// The kinds of URLs that live videos come from.
#pragma once

#include <string_view>

namespace valora::media {

inline bool is_rtsp(std::string_view url) {
  return url.starts_with("rtsp://") || url.starts_with("rtsps://");
}
inline bool is_local_file(std::string_view url) { return url.starts_with("file:"); }
inline bool is_device(std::string_view url) { return url.starts_with("v4l2:"); }

}  // namespace valora::media
