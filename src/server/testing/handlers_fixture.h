// Test fixture: the endpoints over a FakeEngine with the echo script, without sockets.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/clock.h"
#include "server/handlers/app.h"
#include "server/handlers/service.h"
#include "server/testing/echo_script.h"
#include "server/testing/fake_exchange.h"

namespace valora::server::testing {

class Handlers : public ::testing::Test {
 protected:
  Handlers() {
    options_.allow_runtime_lora_updating = true;
    engine_.add_adapter("lens");
    engine_.add_adapter("birds", {{"species", {"cat", "dog", "owl"}}});
  }

  std::shared_ptr<FakeExchange> begin(const std::string& method, const std::string& path,
                                      const std::string& body = {}, Headers headers = {}) {
    if (!service_) service_ = std::make_shared<Service>(options_, engine_, clock_);
    App app(service_);
    auto exchange = std::make_shared<FakeExchange>();
    HttpRequest request{
        .id = "ID", .method = method, .path = path, .headers = std::move(headers), .body = body};
    Headers common;
    if (auto early = app.screen(request, common))
      exchange->respond(std::move(*early));
    else
      app.handle(std::move(request), exchange);
    return exchange;
  }
  std::shared_ptr<FakeExchange> call(const std::string& method, const std::string& path,
                                     const std::string& body = {}, Headers headers = {}) {
    auto exchange = begin(method, path, body, std::move(headers));
    exchange->run();
    return exchange;
  }
  std::shared_ptr<FakeExchange> chat(const std::string& text, const std::string& fields = {}) {
    return call("POST", "/v1/chat/completions", chat_body(text, fields));
  }
  static std::string chat_body(const std::string& text, const std::string& fields) {
    return R"({"messages":[{"role":"user","content":")" + text + "\"}]" +
           (fields.empty() ? "" : ",") + fields + "}";
  }

  valora::testing::FakeEngine engine_{echo_options()};
  ServerOptions options_;
  SimulatedClock clock_;  // drives the limits
  std::shared_ptr<Service> service_;
};

}  // namespace valora::server::testing
