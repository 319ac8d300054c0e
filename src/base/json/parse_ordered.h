// JSON whose keys keep the order of the text.
#pragma once

#include <string_view>

#include "base/json/json.h"

namespace valora {

// The tree of a text that parse_json() accepts, in linear time, which OrderedJson::parse() does not
// take: it compares each key with all earlier ones of its object. Of equal keys the last value is
// kept. Discarded (is_discarded()) if the text is not JSON.
OrderedJson parse_ordered(std::string_view text);

}  // namespace valora
