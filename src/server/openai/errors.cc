#include "server/openai/errors.h"

#include <fmt/format.h>

#include "base/text/strings.h"
#include "server/openai/json_text.h"

namespace valora::server {
namespace {

std::string_view type_of(const Error& error) {
  return error.code == ErrorCode::kNotImplemented ? kInvalidRequest : std::string_view();
}

}  // namespace

int http_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return 400;
    case ErrorCode::kUnauthorized: return 401;
    case ErrorCode::kNotFound: return 404;
    case ErrorCode::kConflict: return 409;
    case ErrorCode::kPayloadTooLarge: return 413;
    case ErrorCode::kUnprocessable: return 422;
    case ErrorCode::kQueueFull: return 429;
    case ErrorCode::kCancelled: return 499;
    case ErrorCode::kInternal: return 500;
    case ErrorCode::kNotImplemented: return 400;  // 400 because clients retry 5xx
    case ErrorCode::kUnavailable: return 503;
  }
  return 500;
}

std::string_view error_type(int status) {
  switch (status) {
    case 401: return "AuthenticationError";
    case 403: return "PermissionDeniedError";
    case 404: return "NotFoundError";
    case 405: return "MethodNotAllowedError";
    case 408: return "RequestTimeoutError";
    case 409: return "ConflictError";
    case 413: return "PayloadTooLargeError";
    case 415: return "UnsupportedMediaTypeError";
    case 422: return "UnprocessableEntityError";
    case 429: return "RateLimitError";
    case 499: return "RequestCancelledError";
    case 501: return "NotImplementedError";
    case 503: return "ServiceUnavailableError";
  }
  return status < 500 ? "BadRequestError" : "InternalServerError";
}

std::string error_json(int status, std::string_view message, std::string_view param,
                       std::string_view type) {
  OrderedJson error = OrderedJson::object();
  error["message"] = message;
  error["type"] = type.empty() ? error_type(status) : type;
  error["param"] = param.empty() ? OrderedJson() : OrderedJson(param);
  error["code"] = status;
  return to_text(OrderedJson{{"error", std::move(error)}});
}

std::string error_json(const Error& error) {
  return error_json(http_status(error.code), error.message, error.param, type_of(error));
}

HttpResponse error_response(int status, std::string_view message, std::string_view param,
                            std::string_view type, int retry_seconds) {
  HttpResponse response{status, "application/json", error_json(status, message, param, type), {}};
  if (status == 429 || status == 503)
    response.headers.emplace_back("Retry-After", std::to_string(retry_seconds));
  if (status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

HttpResponse error_response(const Error& error, int retry_seconds) {
  return error_response(http_status(error.code), error.message, error.param, type_of(error),
                        retry_seconds);
}

Error model_not_found(std::string_view model) {
  return not_found(fmt::format("The model `{}` does not exist.", shortened(model)), "model");
}

}  // namespace valora::server
