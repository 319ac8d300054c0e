// Schemas of answers for /openapi.json.
#pragma once

#include <string_view>

#include "base/json/json.h"

namespace valora::server {

// The answer's content by type: {"application/json": {"schema": …}}; empty if it has no body.
// Method and path are those of a route.
OrderedJson answer_content(std::string_view method, std::string_view path);

// The schema of a shape. A shape is a text "TYPE or TYPE: meaning", with types of JSON Schema,
// "list" and "list of TYPE"; or a list with the shape of its items; or an object of the shapes of
// its fields, with its own text under "". A field whose name ends in "?" is not always there.
OrderedJson schema_of_shape(const OrderedJson& shape);

}  // namespace valora::server
