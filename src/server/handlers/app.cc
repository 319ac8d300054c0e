#include "server/handlers/app.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>

#include "server/handlers/applications.h"
#include "server/handlers/classify.h"
#include "server/handlers/generation.h"
#include "server/handlers/lora.h"
#include "server/handlers/models.h"
#include "server/handlers/status.h"
#include "server/handlers/tokens.h"
#include "server/openai/errors.h"

namespace valora::server {
namespace {

struct Route {
  std::string_view method;  // GET also matches HEAD
  std::string_view path;    // a trailing '/' matches any suffix
  ServiceHandler handler;
  bool open = false;        // needs no API key
  bool model_work = false;  // refused while draining
};

constexpr std::array kRoutes = {
    Route{"POST", "/v1/chat/completions", handle_chat, false, true},
    Route{"POST", "/v1/completions", handle_completion, false, true},
    Route{"POST", "/classify", handle_classify, false, true},
    Route{"POST", "/v1/classify", handle_classify, false, true},
    Route{"GET", "/v1/models", handle_models},
    Route{"GET", kModelPrefix, handle_model},
    Route{"POST", "/v1/load_lora_adapter", handle_load_lora, false, true},
    Route{"POST", "/v1/unload_lora_adapter", handle_unload_lora, false, true},
    Route{"GET", "/v1/lora_adapters", handle_lora_adapters},
    Route{"GET", "/v1/applications", handle_applications},
    Route{"POST", "/tokenize", handle_tokenize},
    Route{"POST", "/detokenize", handle_detokenize},
    Route{"GET", "/health", handle_health, true},
    Route{"GET", "/ping", handle_health, true},
    Route{"POST", "/ping", handle_health, true},
    Route{"GET", "/metrics", handle_metrics, true},
    Route{"GET", "/version", handle_version, true},
};

bool path_matches(const Route& route, std::string_view path) {
  return route.path.ends_with('/') ? path.starts_with(route.path) : path == route.path;
}

bool method_matches(const Route& route, std::string_view method) {
  return route.method == method || (route.method == "GET" && method == "HEAD");
}

const Route* find_route(std::string_view method, std::string_view path) {
  const auto found = std::find_if(kRoutes.begin(), kRoutes.end(), [&](const Route& route) {
    return path_matches(route, path) && method_matches(route, method);
  });
  return found == kRoutes.end() ? nullptr : &*found;
}

// "GET, HEAD, OPTIONS"; empty for an unknown path.
std::string methods_of(std::string_view path) {
  std::string methods;
  for (const Route& route : kRoutes)
    if (path_matches(route, path))
      methods += route.method == "GET" ? "GET, HEAD, " : fmt::format("{}, ", route.method);
  return methods.empty() ? methods : methods + "OPTIONS";
}

// Constant time, so that the response time does not reveal how much of a key is right.
bool same_secret(std::string_view given, std::string_view secret) {
  unsigned char difference = given.size() == secret.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i)
    difference |=
        static_cast<unsigned char>(given[i] ^ (secret.empty() ? 1 : secret[i % secret.size()]));
  return difference == 0;
}

bool is_json(std::string_view content_type) {
  std::string type(content_type.substr(0, content_type.find(';')));
  while (type.ends_with(' ')) type.pop_back();
  return same_header_name(type, "application/json") || type.ends_with("+json");
}

HttpResponse unroutable(const HttpRequest& head) {
  const std::string methods = methods_of(head.path);
  if (methods.empty())
    return error_response(404, fmt::format("the path {} does not exist", head.path));
  HttpResponse response = error_response(
      405, fmt::format("the path {} does not support the method {}", head.path, head.method));
  response.headers.emplace_back("Allow", methods);
  return response;
}

HttpResponse options_response(const HttpRequest& head) {
  const std::string methods = methods_of(head.path);
  if (methods.empty()) return unroutable(head);
  HttpResponse response{.status = 204, .content_type = ""};
  response.headers.emplace_back("Allow", methods);
  return response;
}

}  // namespace

bool App::authorized(const HttpRequest& head) const {
  const auto& keys = service_->options.api_keys;
  if (keys.empty()) return true;
  constexpr std::string_view kBearer = "Bearer ";
  std::string_view given = head.header("authorization");
  if (given.size() < kBearer.size() || !same_header_name(given.substr(0, kBearer.size()), kBearer))
    return false;
  given.remove_prefix(kBearer.size());
  return std::any_of(keys.begin(), keys.end(),
                     [&](const std::string& key) { return same_secret(given, key); });
}

void App::add_cors_headers(const HttpRequest& head, Headers& common) const {
  const auto& origins = service_->options.cors_allowed_origins;
  const std::string origin(head.header("origin"));
  if (origins.empty() || origin.empty()) return;
  const bool any = std::find(origins.begin(), origins.end(), "*") != origins.end();
  if (!any) common.emplace_back("Vary", "Origin");
  if (!any && std::find(origins.begin(), origins.end(), origin) == origins.end()) return;
  common.emplace_back("Access-Control-Allow-Origin", any ? "*" : origin);
  common.emplace_back("Access-Control-Expose-Headers", "X-Request-Id");
  if (head.method != "OPTIONS") return;
  common.emplace_back("Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS");
  common.emplace_back("Access-Control-Max-Age", "600");
  if (const auto asked = head.header("access-control-request-headers"); !asked.empty())
    common.emplace_back("Access-Control-Allow-Headers", asked);
}

std::optional<HttpResponse> App::screen(const HttpRequest& head, Headers& common) {
  add_cors_headers(head, common);
  if (head.method == "OPTIONS") return options_response(head);
  const Route* route = find_route(head.method, head.path);
  if (!route) return unroutable(head);
  if (!route->open && !authorized(head))
    return error_response(401, "the API key is missing or wrong");
  if (route->model_work && service_->draining) return error_response(503, "the server is draining");
  const std::string_view type = head.header("content-type");
  if (route->method == "POST" && !route->open && !type.empty() && !is_json(type))
    return error_response(415,
                          fmt::format("the content type must be application/json, not {}", type));
  return std::nullopt;
}

bool App::is_status(const HttpRequest& head) const {
  const Route* route = find_route(head.method, head.path);
  return route && route->open;
}

void App::on_answered(const HttpOutcome& outcome) {
  const auto route = std::find_if(kRoutes.begin(), kRoutes.end(), [&](const Route& known) {
    return path_matches(known, outcome.path);
  });
  service_->metrics.http_answered(route == kRoutes.end() ? "none" : route->path, outcome);
}

void App::handle(HttpRequest request, std::shared_ptr<Exchange> exchange) {
  try {
    const ServiceHandler handler = find_route(request.method, request.path)->handler;
    handler(service_, std::move(request), exchange);
  } catch (const std::exception& e) {
    spdlog::error("while handling a request: {}", e.what());
    exchange->respond(error_response(500, "the server failed while it read the request"));
  }
}

}  // namespace valora::server
