// The HTTP application: routing, API keys and CORS in front of the handlers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/handlers/service.h"
#include "server/http/http.h"

namespace valora::server {

// The response to a request whose Host is not in ServerOptions::allowed_hosts.
HttpResponse host_not_allowed();

class App final : public HttpHandler {
 public:
  explicit App(std::shared_ptr<Service> service) : service_(std::move(service)) {}

  std::optional<HttpResponse> screen(const HttpRequest& head, Headers& common) override;
  bool is_status(const HttpRequest& head) const override;
  bool takes_messages(const HttpRequest& head) const override;
  std::optional<size_t> max_body_bytes(const HttpRequest& head) const override;
  std::string client_of(const HttpRequest& head) const override {
    return service_->client_of(head);
  }
  void on_answered(const HttpOutcome& outcome) override;
  void handle(HttpRequest request, std::shared_ptr<Exchange> exchange) override;

 private:
  void add_cors_headers(const HttpRequest& head, Headers& common) const;
  std::optional<HttpResponse> refusal(const HttpRequest& head, Headers& common) const;

  const std::shared_ptr<Service> service_;
};

}  // namespace valora::server
