// What the parser of requests and the reader of videos must see alike.
#pragma once

#include <algorithm>
#include <string_view>

#include "base/strings.h"

namespace valora {

// The highest rate of frames per second that can be asked for.
inline constexpr double kMaxFps = 240;

// True if the URL is a list of frames (`data:video/jpeg;base64,…`) instead of one file.
inline bool is_frame_list(std::string_view url) {
  constexpr std::string_view kType = "data:video/jpeg";
  const std::string_view rest = url.substr(std::min(url.size(), kType.size()));
  return lower_case(url.substr(0, kType.size())) == kType &&
         (rest.empty() || rest.front() == ';' || rest.front() == ',');
}

}  // namespace valora
