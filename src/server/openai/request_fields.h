// The fields of the endpoints, for /openapi.json.
#pragma once

#include <string_view>

namespace valora::server {

// openai/request_fields.json: {"/path": {"body": {}, "honoured": {"field": example}, "no_effect":
// {}, "refused": {}}}; "body" is the smallest valid one.
std::string_view request_fields();

// openai/api_reference.json: {"fields": {"field" or "/path field": meaning}, "also": {"/path":
// {"field": type}}, "answers": {"/path": {"content type": shape}}}; "also" has honoured fields that
// need another one, which request_fields() leaves out. handlers/openapi_answers.h explains shapes.
std::string_view api_reference();

}  // namespace valora::server
