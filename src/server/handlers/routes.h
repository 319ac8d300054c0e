// The endpoints of the server.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "server/handlers/service.h"

namespace valora::server {

struct Route {
  std::string_view method;  // GET also matches HEAD
  // A trailing '/' matches any suffix; "/" alone matches itself; "{name}" matches one part.
  std::string_view path;
  ServiceHandler handler;
  std::string_view summary;  // for /openapi.json; empty: not part of the API
  bool open = false;         // needs no API key
  bool model_work = false;   // refused while draining, and counted by /load
  bool changes = false;      // changes the server: not for pages of other origins (cross_site.h)
  // True if the route is enabled; null: always enabled.
  bool (*enabled)(const ServerOptions& options) = nullptr;
  // For bodies that are not JSON: answers a request that is rejected by its header alone.
  std::optional<HttpResponse> (*screen)(const Service& service, const HttpRequest& head) = nullptr;
  bool messages = false;  // HttpHandler::takes_messages()
};

std::span<const Route> all_routes();

bool path_matches(const Route& route, std::string_view path);
// Null if no endpoint has this path and method.
const Route* find_route(const ServerOptions& options, std::string_view method,
                        std::string_view path);
// "GET, HEAD, OPTIONS"; empty for an unknown path.
std::string methods_of(const ServerOptions& options, std::string_view path);
// `path` without ServerOptions::root_path.
std::string_view served_path(const ServerOptions& options, std::string_view path);

}  // namespace valora::server
