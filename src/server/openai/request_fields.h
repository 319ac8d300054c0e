// The fields of request bodies, as openai/request_fields.json lists them by endpoint.
#pragma once

#include <string_view>

namespace valora::server {

// {"/path": {"body": {}, "honoured": {"field": example}, "no_effect": {}, "refused": {}}}; "body"
// is the smallest one.
std::string_view request_fields();

}  // namespace valora::server
