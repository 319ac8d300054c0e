// Events of streams as lines for people.
#pragma once

#include <string>

#include "base/json/json.h"

namespace valora::cli {

// "15:40:40 start digits, frame 3: 7", without a line break; the time is local. Texts of models are
// shown without control characters.
std::string event_line(const OrderedJson& event);

// A path of a file that is there as "file://ABSOLUTE"; anything else as it is.
std::string source_url(const std::string& source);

}  // namespace valora::cli
