#include "server/handlers/app.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/fault.h"
#include "base/text/strings.h"
#include "server/handlers/cross_site.h"
#include "server/handlers/handlers.h"
#include "server/handlers/ollama/ollama.h"
#include "server/handlers/routes.h"
#include "server/http/allowed_hosts.h"
#include "server/openai/errors.h"

namespace valora::server {
namespace {

// Of an uploaded file's form, around the file.
constexpr size_t kFormBytes = size_t{64} << 10;

bool is_json(std::string_view content_type) {
  std::string type(content_type.substr(0, content_type.find(';')));
  while (type.ends_with(' ')) type.pop_back();
  return same_header_name(type, "application/json") || type.ends_with("+json");
}

HttpResponse unroutable(const ServerOptions& options, const HttpRequest& head,
                        std::string_view path) {
  const std::string methods = methods_of(options, path);
  if (methods.empty())
    return error_response(404, fmt::format("the path {} does not exist", head.path));
  HttpResponse response = error_response(
      405, fmt::format("the path {} does not support the method {}", head.path, head.method));
  response.headers.emplace_back("Allow", methods);
  return response;
}

HttpResponse options_response(const ServerOptions& options, const HttpRequest& head,
                              std::string_view path) {
  const std::string methods = methods_of(options, path);
  if (methods.empty()) return unroutable(options, head, path);
  HttpResponse response{.status = 204, .content_type = ""};
  response.headers.emplace_back("Allow", methods);
  return response;
}

HttpResponse redirect(const std::string& path) {
  HttpResponse response{.status = 308, .content_type = ""};
  response.headers.emplace_back("Location", path);
  return response;
}

// Counts an exchange in /load until the handler releases it.
std::shared_ptr<Exchange> counted(const std::shared_ptr<Service>& service,
                                  std::shared_ptr<Exchange> exchange) {
  ++service->load;
  Exchange* const counted = exchange.get();
  // shared_ptr calls the deleter even if allocating its control block fails.
  return {counted, [service, exchange = std::move(exchange)](Exchange*) { --service->load; }};
}

}  // namespace

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
  common.emplace_back("Access-Control-Allow-Methods", "GET, HEAD, POST, DELETE, OPTIONS");
  common.emplace_back("Access-Control-Max-Age", "600");
  if (const auto asked = head.header("access-control-request-headers"); !asked.empty())
    common.emplace_back("Access-Control-Allow-Headers", asked);
}

HttpResponse host_not_allowed() {
  return error_response(421, "the Host header is not one of --allowed-hosts");
}

std::optional<HttpResponse> App::screen(const HttpRequest& head, Headers& common) {
  auto refused = refusal(head, common);
  if (refused && service_->options.ollama_api &&
      served_path(service_->options, head.path).starts_with("/api/"))
    return ollama::plain_error(std::move(*refused));
  return refused;
}

std::optional<HttpResponse> App::refusal(const HttpRequest& head, Headers& common) const {
  if (!host_allowed(head.header("host"), service_->options.allowed_hosts))
    return host_not_allowed();
  add_cors_headers(head, common);
  const std::string_view path = served_path(service_->options, head.path);
  if (service_->options.page && !path.empty() && head.path == service_->options.root_path)
    return redirect(head.path + "/");  // the page refers to its files relative to its own path
  if (head.method == "OPTIONS") return options_response(service_->options, head, path);
  const Route* route = find_route(service_->options, head.method, path);
  if (!route) return unroutable(service_->options, head, path);
  if (!route->open && !service_->authorized(head))
    return error_response(401, "the API key is missing or wrong");
  if (auto refused = refuse_cross_site(service_->options, *route, head)) return refused;
  if (route->model_work && service_->draining) return error_response(503, "the server is draining");
  const std::string_view type = head.header("content-type");
  if (route->screen) {
    if (auto refused = route->screen(*service_, head)) return refused;
  } else if (route->method == "POST" && !route->open && !type.empty() && !is_json(type))
    return error_response(415,
                          fmt::format("the content type must be application/json, not {}", type));
  if (const auto coding = head.header("content-encoding");
      !coding.empty() && !same_header_name(coding, "identity")) {
    HttpResponse response = error_response(
        415, fmt::format("the Content-Encoding \"{}\" is not supported; send the body as it is",
                         shortened(coding, 40)));
    response.headers.emplace_back("Accept-Encoding", "identity");
    return response;
  }
  return std::nullopt;
}

std::optional<size_t> App::max_body_bytes(const HttpRequest& head) const {
  if (head.method != "POST") return std::nullopt;
  const std::string_view path = served_path(service_->options, head.path);
  if (path == kUploadPath) return service_->uploads.limits().one;
  if (path == kFilesPath) return service_->options.batches.file_bytes + kFormBytes;
  return std::nullopt;
}

bool App::is_status(const HttpRequest& head) const {
  const Route* route =
      find_route(service_->options, head.method, served_path(service_->options, head.path));
  return route && route->open;
}

bool App::takes_messages(const HttpRequest& head) const {
  const Route* route =
      find_route(service_->options, head.method, served_path(service_->options, head.path));
  return route && route->messages;
}

void App::on_answered(const HttpOutcome& outcome) {
  const std::string_view path = served_path(service_->options, outcome.path);
  const std::span<const Route> routes = all_routes();
  const auto route = std::find_if(routes.begin(), routes.end(),
                                  [&](const Route& known) { return path_matches(known, path); });
  service_->metrics.http_answered(route == routes.end() ? "none" : route->path, outcome);
}

void App::handle(HttpRequest request, std::shared_ptr<Exchange> exchange) {
  try {
    if (const auto path = served_path(service_->options, request.path);
        path.size() < request.path.size())
      request.path = std::string(path);
    const Route* route = find_route(service_->options, request.method, request.path);
    if (route->model_work) exchange = counted(service_, exchange);
    route->handler(service_, std::move(request), exchange);
  } catch (const std::bad_alloc&) {
    exchange->respond(error_response(out_of_memory()));
  } catch (const std::exception& e) {
    spdlog::error("while handling a request: {}", e.what());
    exchange->respond(error_response(500, "the server failed while it read the request"));
  }
}

}  // namespace valora::server
