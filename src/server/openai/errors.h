// OpenAI's error objects: {"error": {"message", "type", "param", "code"}}. "code" is the HTTP
// status.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "server/http/http.h"

namespace valora::server {

// OpenAI's error type for a 400: the request asks for a part of the API, or an application, that
// this server does not have.
inline constexpr std::string_view kInvalidRequest = "invalid_request_error";

int http_status(ErrorCode code);
std::string_view error_type(int status);  // "BadRequestError"

// The JSON text of an error object. An empty param becomes null; an empty type becomes
// error_type(status).
std::string error_json(int status, std::string_view message, std::string_view param = {},
                       std::string_view type = {});
std::string error_json(const Error& error);

// Sets Retry-After for 429 and 503.
HttpResponse error_response(int status, std::string_view message, std::string_view param = {},
                            std::string_view type = {}, int retry_seconds = 1);
HttpResponse error_response(const Error& error, int retry_seconds = 1);

Error model_not_found(std::string_view model);  // The model `x` does not exist.

}  // namespace valora::server
