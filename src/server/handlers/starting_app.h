// Answers requests while the model is loading, then hands every request to App.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "server/handlers/app.h"
#include "server/http/http.h"
#include "server/server.h"

namespace valora::server {

class StartingApp final : public HttpHandler {
 public:
  // `options` must outlive this object.
  explicit StartingApp(const ServerOptions& options) : options_(options) {}

  // Called at most once.
  void serve(std::shared_ptr<App> app);

  std::optional<HttpResponse> screen(const HttpRequest& head, Headers& common) override;
  bool is_status(const HttpRequest& head) const override;
  bool takes_messages(const HttpRequest& head) const override;
  std::optional<size_t> max_body_bytes(const HttpRequest& head) const override;
  std::string client_of(const HttpRequest& head) const override;
  void on_answered(const HttpOutcome& outcome) override;
  void handle(HttpRequest request, std::shared_ptr<Exchange> exchange) override;

 private:
  const ServerOptions& options_;
  std::shared_ptr<App> app_;             // written once, before serving_
  std::atomic<App*> serving_ = nullptr;  // app_ once it serves
};

}  // namespace valora::server
