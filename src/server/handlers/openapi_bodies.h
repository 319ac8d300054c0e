// The schemas of request bodies and the statuses of answers, for /openapi.json.
#pragma once

#include <string_view>

#include "base/json.h"
#include "server/handlers/routes.h"

namespace valora::server {

// Of a POST endpoint; any object if its fields are not known.
OrderedJson body_schema(std::string_view path);
// By status, with what each means. keys: the server asks for API keys.
OrderedJson responses_of(const Route& route, bool keys);

}  // namespace valora::server
