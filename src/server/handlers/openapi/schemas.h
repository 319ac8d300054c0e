// Schemas for /openapi.json.
#pragma once

#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "server/handlers/routes.h"

namespace valora::server {

// The answer's content by type: {"application/json": {"schema": …}}; empty if it has no body.
// Method and path are those of a route.
OrderedJson answer_content(std::string_view method, std::string_view path);

// The schema of a shape. A shape is a text "TYPE or TYPE: meaning", with types of JSON Schema,
// "list" and "list of TYPE"; or a list with the shape of its items; or an object of the shapes of
// its fields, with its own text under "". A field whose name ends in "?" is not always there.
OrderedJson schema_of_shape(const OrderedJson& shape);

// The body of a POST endpoint; any object if its fields are not known.
OrderedJson body_schema(std::string_view route);
// Whether requests to the route have a body.
bool takes_body(const Route& route);
// Responses by status, with their meaning. keys: the server requires API keys.
OrderedJson responses_of(const Route& route, bool keys);

// The parameters of a list of files or batches; none for other paths.
std::vector<OrderedJson> query_parameters(std::string_view route);

}  // namespace valora::server
