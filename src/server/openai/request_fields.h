// The request body fields of each endpoint, as listed in openai/request_fields.json.
#pragma once

#include <string_view>

namespace valora::server {

// {"/path": {"body": {}, "honoured": {"field": example}, "no_effect": {}, "refused": {}}}; "body"
// is the smallest valid one.
std::string_view request_fields();

}  // namespace valora::server
