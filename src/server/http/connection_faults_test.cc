// Exceptions in the middle of a request end that request and leave nothing behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <new>
#include <stdexcept>
#include <thread>

#include "server/http/http_server.h"
#include "server/testing/socket_client.h"

namespace valora::server {
namespace {

using testing::SocketClient;

// Throws where the path says.
class Throwing final : public HttpHandler {
 public:
  std::optional<HttpResponse> screen(const HttpRequest& head, Headers&) override {
    if (head.path == "/screen") throw std::bad_alloc();
    return std::nullopt;
  }
  void handle(HttpRequest request, std::shared_ptr<Exchange> exchange) override {
    if (request.path == "/handle") throw std::runtime_error("a fault");
    if (request.path == "/memory") throw std::bad_alloc();
    if (request.path == "/post") return exchange->post([exchange] { throw std::bad_alloc(); });
    if (request.path == "/left") {
      exchange->on_disconnect([] { throw std::bad_alloc(); });
      held = exchange;
      waiting.set_value();
      return;
    }
    exchange->respond({.body = "fine"});
  }
  std::shared_ptr<Exchange> held;
  std::promise<void> waiting;
};

class ConnectionFaults : public ::testing::Test {
 protected:
  ConnectionFaults() {
    HttpLimits limits;
    limits.max_total_body_bytes = 1000;
    auto server = HttpServer::start({.host = "127.0.0.1", .limits = limits}, handler_);
    EXPECT_TRUE(server.ok());
    server_ = std::move(*server);
  }
  // Nothing of earlier requests is left: a body that takes the whole budget can be read, and a
  // drain ends.
  void expect_clean() {
    for (int i = 0; i < 5000 && server_->active_exchanges() > 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(server_->active_exchanges(), 0u);
    SocketClient client(server_->port());
    EXPECT_EQ(client.post("/", std::string(1000, ' ')).body, "fine");
    client.disconnect();
    std::promise<void> idle;
    server_->when_idle([&] { idle.set_value(); });
    EXPECT_EQ(idle.get_future().wait_for(std::chrono::seconds(5)), std::future_status::ready);
  }
  const std::shared_ptr<Throwing> handler_ = std::make_shared<Throwing>();
  std::unique_ptr<HttpServer> server_;
};

TEST_F(ConnectionFaults, ExceptionWhileReadingTheHeaderClosesTheConnection) {
  SocketClient client(server_->port());
  client.send(SocketClient::post_text("/screen", std::string(600, ' ')));
  EXPECT_EQ(client.read_all(), "");
  expect_clean();
}

TEST_F(ConnectionFaults, HandlerExceptionIs500) {
  SocketClient client(server_->port());
  EXPECT_EQ(client.post("/handle", std::string(600, ' ')).status, 500);
  expect_clean();
}

TEST_F(ConnectionFaults, HandlerOutOfMemoryIs503) {
  SocketClient client(server_->port());
  const auto answer = client.post("/memory", std::string(600, ' '));
  EXPECT_EQ(answer.status, 503);
  EXPECT_TRUE(answer.has("Retry-After: "));
  expect_clean();
}

TEST_F(ConnectionFaults, ExceptionInPostedWorkClosesTheConnection) {
  SocketClient client(server_->port());
  client.send(SocketClient::post_text("/post", std::string(600, ' ')));
  EXPECT_EQ(client.read_all(), "");
  expect_clean();
}

TEST_F(ConnectionFaults, ExceptionOnDisconnectLeaksNothing) {
  SocketClient client(server_->port());
  client.send(SocketClient::post_text("/left", std::string(600, ' ')));
  handler_->waiting.get_future().wait();
  client.disconnect();
  expect_clean();
  handler_->held = nullptr;
}

}  // namespace
}  // namespace valora::server
