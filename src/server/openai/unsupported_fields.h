// Rejects fields that would change the answer but are not supported. docs/request-fields.md lists
// all fields.
#pragma once

#include <string>
#include <string_view>

#include "base/json/json.h"
#include "base/result.h"

namespace valora::server {

// kNotImplemented with the field's name (kInvalidArgument for a wrong type). Values that ask for
// nothing pass: null, false, "", [], {} and defaults.

// The fields that the endpoint refuses whatever their value (request_fields.h). The other functions
// call it, too.
Status refuse_fields(const Json& body, std::string_view path);

Status check_chat_fields(const Json& body);
Status check_completion_fields(const Json& body);
Status check_classify_fields(const Json& body);
Status check_embed_fields(const Json& body);

// "verbosity" is a hint without effect here: low, medium and high pass. param: the field named in
// the error.
Status check_verbosity(const Json& object, const std::string& param);

}  // namespace valora::server
