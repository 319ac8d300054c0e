// Test fixture: a server on real sockets, over a FakeEngine with the echo script.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/json/json.h"
#include "server/server.h"
#include "server/testing/echo_script.h"
#include "server/testing/socket_client.h"

namespace valora::server::testing {

inline constexpr const char* kChat = "/v1/chat/completions";
inline const std::string kStream = R"("stream":true)";

inline std::string chat_body(const std::string& text, const std::string& fields = {}) {
  return R"({"messages":[{"role":"user","content":")" + text + "\"}]" +
         (fields.empty() ? "" : ",") + fields + "}";
}

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() { options_.port = 0; }

  void start() {
    auto server = Server::start(options_, engine_);
    ASSERT_TRUE(server.ok()) << server.error().message;
    server_ = std::move(*server);
  }
  uint16_t port() const { return server_->port(); }
  void expect_alive() {
    SocketClient client(port());
    EXPECT_EQ(client.post(kChat, chat_body("still here")).status, 200);
  }

  ServerOptions options_;
  valora::testing::FakeEngine engine_{echo_options()};
  std::unique_ptr<Server> server_;
};

}  // namespace valora::server::testing
