// Definitions that the request parser and the video reader must share.
#pragma once

#include <algorithm>
#include <string_view>

#include "base/text/strings.h"

namespace valora {

// The highest frame rate, per second, that a request may ask for.
inline constexpr double kMaxFps = 240;

// True if the URL is a list of frames (`data:video/jpeg;base64,…`) instead of one file.
inline bool is_frame_list(std::string_view url) {
  constexpr std::string_view kType = "data:video/jpeg";
  const std::string_view rest = url.substr(std::min(url.size(), kType.size()));
  return lower_case(url.substr(0, kType.size())) == kType &&
         (rest.empty() || rest.front() == ';' || rest.front() == ',');
}

}  // namespace valora
