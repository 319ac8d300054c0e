// The fields of request bodies, said once: openai/request_fields.json. The parsers take the names
// that they refuse from it, /openapi.json its schemas, docs/request-fields.md its table
// (tools/request_fields), and the tests their examples.
//
// The file is {"bodies": {PATH: the smallest valid body}, "fields": {NAME: [entry, …]}}. An entry
// is
// {"endpoints": [PATH, …], "effect": "honoured", "none" or "refused", "example": a value}, and
//   "meaning"  of an honoured field;
//   "types"    JSON types of an honoured field, if it has others than its example's;
//   "with"     other fields that the body must have for this one to be honoured;
//   "unless"   of a refused field: the values that pass, other than those that ask for nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"

namespace valora::server {

struct RequestField {
  enum class Effect { kHonoured, kNone, kRefused };
  std::string name;
  Effect effect = Effect::kHonoured;
  OrderedJson entry;  // of the file
};

// The path under which the tables have an endpoint with several.
std::string_view table_path(std::string_view path);

// By name; empty for an endpoint without a table.
const std::vector<RequestField>& request_fields(std::string_view path);

// The table's refused fields of which no value passes but those that ask for nothing.
const std::vector<std::string>& refused_fields(std::string_view path);

// openai/request_fields.json.
std::string_view request_fields_text();
// openai/answer_shapes.json: {PATH or "METHOD PATH": {content type: shape}}.
// handlers/openapi/schemas.h explains shapes.
std::string_view answer_shapes_text();

}  // namespace valora::server
