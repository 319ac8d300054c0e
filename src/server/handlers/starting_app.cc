#include "server/handlers/starting_app.h"

#include <utility>

#include "server/handlers/handlers.h"
#include "server/handlers/page/page.h"
#include "server/handlers/routes.h"
#include "server/http/allowed_hosts.h"
#include "server/openai/errors.h"

namespace valora::server {
namespace {

// Requests passed here are left to App, which may have taken over by the time they are handled.
const Route* route_without_engine(const ServerOptions& options, const HttpRequest& request) {
  const Route* route = find_route(options, request.method, served_path(options, request.path));
  const bool found = route && (route->handler == handle_page || route->handler == handle_version);
  return found ? route : nullptr;
}

HttpResponse still_loading() {
  HttpResponse response = error_response(503, "the server is loading the model");
  response.headers.emplace_back("Retry-After", "2");
  return response;
}

}  // namespace

void StartingApp::serve(std::shared_ptr<App> app) {
  app_ = std::move(app);
  serving_ = app_.get();
}

std::optional<HttpResponse> StartingApp::screen(const HttpRequest& head, Headers& common) {
  if (App* app = serving_) return app->screen(head, common);
  if (!host_allowed(head.header("host"), options_.allowed_hosts)) return host_not_allowed();
  if (route_without_engine(options_, head)) return std::nullopt;
  return still_loading();
}

bool StartingApp::is_status(const HttpRequest& head) const {
  const App* app = serving_;
  return app && app->is_status(head);
}

bool StartingApp::takes_messages(const HttpRequest& head) const {
  const App* app = serving_;
  return app && app->takes_messages(head);
}

std::optional<size_t> StartingApp::max_body_bytes(const HttpRequest& head) const {
  const App* app = serving_;
  return app ? app->max_body_bytes(head) : std::nullopt;
}

std::string StartingApp::client_of(const HttpRequest& head) const {
  const App* app = serving_;
  return app ? app->client_of(head) : HttpHandler::client_of(head);
}

void StartingApp::on_answered(const HttpOutcome& outcome) {
  if (App* app = serving_) app->on_answered(outcome);
}

void StartingApp::handle(HttpRequest request, std::shared_ptr<Exchange> exchange) {
  if (App* app = serving_) return app->handle(std::move(request), std::move(exchange));
  const Route* route = route_without_engine(options_, request);
  request.path = std::string(served_path(options_, request.path));
  route->handler(nullptr, std::move(request), std::move(exchange));
}

}  // namespace valora::server
