// Test fixture: the endpoints with two applications.
#pragma once

#include <string>

#include "server/testing/handlers_fixture.h"

namespace valora::server::testing {

class WithApplications : public Handlers {
 protected:
  WithApplications() {
    // Times in the echo script: 0.4 s to the first token, 0.6 s for all further ones, 1 s in total.
    options_.applications = {{.name = "retrieval",
                              .models = {"lens"},
                              .ttft = 0.5,
                              .tpot = 0.25,
                              .priority = 3,
                              .share = 2},
                             {.name = "video", .models = {"birds"}, .ttft = 0.3, .e2e = 1.5}};
  }

  std::shared_ptr<FakeExchange> chat_with(const std::string& application,
                                          const std::string& text = "x",
                                          const std::string& fields = {}) {
    auto exchange = begin_with(application, text, fields);
    exchange->run();
    return exchange;
  }
  std::shared_ptr<FakeExchange> begin_with(const std::string& application,
                                           const std::string& text = "x",
                                           const std::string& fields = {}) {
    return begin("POST", "/v1/chat/completions", chat_body(text, fields),
                 {{"x-valora-application", application}});
  }

  // Value of an application's counter series; -1 if there is none.
  double count(const std::string& name, const std::string& application, const std::string& label,
               const std::string& value, const std::string& more = {}) {
    const std::string text = service_->metrics.text();
    for (size_t at = 0; (at = text.find("\nvalora:application_" + name, at)) != text.npos; ++at) {
      const std::string line = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
      const auto has = [&](const std::string& part) { return line.find(part) != line.npos; };
      if (has("application=\"" + application + "\"") && has(label + "=\"" + value + "\"") &&
          has(more))
        return std::stod(line.substr(line.rfind(' ') + 1));
    }
    return -1;
  }
  double outcomes(const std::string& application, const std::string& outcome) {
    return count("requests_total", application, "outcome", outcome);
  }
  double met(const std::string& application, const std::string& target) {
    return count("target_total", application, "target", target, "met=\"yes\"");
  }
  double missed(const std::string& application, const std::string& target) {
    return count("target_total", application, "target", target, "met=\"no\"");
  }
};

inline std::string header_of(const FakeExchange& exchange, std::string_view name) {
  for (const auto& [key, value] : exchange.response.headers)
    if (key == name) return value;
  return {};
}

}  // namespace valora::server::testing
