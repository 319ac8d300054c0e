// Request body schemas and response statuses for /openapi.json.
#pragma once

#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "server/handlers/routes.h"

namespace valora::server {

// The body of a POST endpoint; any object if its fields are not known.
OrderedJson body_schema(std::string_view route);
// Whether requests to the route have a body.
bool takes_body(const Route& route);
// Responses by status, with their meaning. keys: the server requires API keys.
OrderedJson responses_of(const Route& route, bool keys);

// The parameters of a list of files or batches; none for other paths.
std::vector<OrderedJson> query_parameters(std::string_view route);

}  // namespace valora::server
