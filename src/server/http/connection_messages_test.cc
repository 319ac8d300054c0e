// Messages of WebSockets as raw frames: limits, faults and ends. tests/server/test_web_socket.py
// has a client of another library.
#include "server/http/connection_messages.h"

#include <gmock/gmock.h>

#include <future>
#include <mutex>
#include <thread>

#include "server/http/http_server.h"
#include "server/testing/socket_client.h"

namespace valora::server {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using testing::SocketClient;

// Answers messages to /echo with their length, or as they say.
class Echo final : public HttpHandler {
 public:
  std::optional<HttpResponse> screen(const HttpRequest& head, Headers&) override {
    if (head.method == "POST" && head.header("x-refused") == "yes")
      return HttpResponse{.status = 403, .body = "refused"};
    return std::nullopt;
  }
  bool takes_messages(const HttpRequest& head) const override {
    return head.method == "POST" && head.path == "/echo";
  }
  void handle(HttpRequest request, std::shared_ptr<Exchange> exchange) override {
    if (request.body == "memory") throw std::bad_alloc();
    if (request.body == "hold") {
      held = exchange;
      return waiting.set_value();
    }
    const int status = request.body == "missing" ? 404 : 200;
    exchange->respond({.status = status,
                       .body = request.method + " " + std::to_string(request.body.size()) + " " +
                               std::string(request.header("authorization"))});
  }
  std::shared_ptr<Exchange> held;
  std::promise<void> waiting;
};

std::string upgrade(const std::string& path, const std::string& more = "",
                    const std::string& key = "dGhlIHNhbXBsZSBub25jZQ==",
                    const std::string& version = "13") {
  return "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
         "Sec-WebSocket-Key: " + key + "\r\nSec-WebSocket-Version: " + version + "\r\n" + more +
         "\r\n";
}

// A frame of a client, with a mask of zeros. opcode: 1 text, 2 binary, 0 a further part, 9 ping.
std::string frame(const std::string& bytes, int opcode = 2, bool last = true) {
  std::string out{static_cast<char>((last ? 0x80 : 0) | opcode)};
  if (bytes.size() < 126) {
    out += static_cast<char>(0x80 | bytes.size());
  } else {
    out += static_cast<char>(0x80 | 126);
    out += static_cast<char>(bytes.size() >> 8);
    out += static_cast<char>(bytes.size() & 0xff);
  }
  return out + std::string(4, '\0') + bytes;
}

// The close frame with this code.
std::string closing(int code) {
  return {static_cast<char>(code >> 8), static_cast<char>(code & 0xff)};
}

class ConnectionMessages : public ::testing::Test {
 protected:
  void start() {
    auto server = HttpServer::start({.host = "127.0.0.1", .limits = limits_}, handler_);
    ASSERT_TRUE(server.ok());
    server_ = std::move(*server);
  }
  void open(SocketClient& client, const std::string& more = "") {
    client.send(upgrade("/echo", more));
    ASSERT_EQ(client.read_response(false).status, 101);
  }
  // No exchange and no byte of a budget is left.
  void expect_clean() {
    for (int i = 0; i < 5000 && server_->active_exchanges() > 0; ++i)
      std::this_thread::sleep_for(milliseconds(1));
    EXPECT_EQ(server_->active_exchanges(), 0u);
    const size_t most = std::min(limits_.max_total_body_bytes, limits_.max_unfinished_body_bytes);
    SocketClient client(server_->port());
    EXPECT_EQ(client.post("/", std::string(most, ' ')).status, 200);
  }

  HttpLimits limits_{.max_body_bytes = 2000, .max_total_body_bytes = 2000};
  const std::shared_ptr<Echo> handler_ = std::make_shared<Echo>();
  std::unique_ptr<HttpServer> server_;
};

TEST_F(ConnectionMessages, AreRequestsWithTheHeaderOfTheFirst) {
  start();
  SocketClient client(server_->port());
  open(client, "Authorization: Bearer key\r\n");
  client.send(frame("12345"));
  EXPECT_THAT(client.read_until("key"), HasSubstr("POST 5 Bearer key"));
  client.send(frame("123", 1, false) + frame("", 9) + frame("456", 0, false) + frame("7", 0));
  EXPECT_THAT(client.read_until("key"), HasSubstr("POST 7 "));
  client.send(frame("1") + frame("22"));  // the second waits
  EXPECT_THAT(client.read_until("key"), HasSubstr("POST 1 "));
  EXPECT_THAT(client.read_until("key"), HasSubstr("POST 2 "));
  client.disconnect();
  expect_clean();
}

TEST_F(ConnectionMessages, UpgradesAreRefusedInHttp) {
  start();
  const auto answer = [&](const std::string& request) {
    SocketClient client(server_->port());
    client.send(request);
    return client.read_response();
  };
  EXPECT_EQ(answer(upgrade("/echo", "X-Refused: yes\r\n")).status, 403);
  EXPECT_EQ(answer(upgrade("/echo", "", "short")).status, 400);
  EXPECT_TRUE(answer(upgrade("/echo", "", "dGhlIHNhbXBsZSBub25jZQ==", "8"))
                  .has("Sec-WebSocket-Version: 13"));
  EXPECT_EQ(answer(upgrade("/echo", "Content-Length: 5\r\n")).status, 400);
  EXPECT_EQ(answer(upgrade("/echo") + frame("early")).status, 400);
  EXPECT_EQ(answer(upgrade("/other")).status, 200) << "an ordinary request";
  expect_clean();
}

TEST_F(ConnectionMessages, CountAgainstTheBudgetsWhileTheyArrive) {
  limits_.max_unfinished_body_bytes = 1000;
  start();
  SocketClient client(server_->port());
  open(client);
  client.send(frame(std::string(600, ' '), 2, false));
  EXPECT_FALSE(client.readable(50));
  client.send(frame(std::string(600, ' '), 0, false));
  EXPECT_NE(client.read_until(closing(1013) + "too many request bodies"), "");
  client.disconnect();
  expect_clean();
}

TEST_F(ConnectionMessages, BeyondTheLimitEndTheSocket) {
  start();
  SocketClient client(server_->port());
  open(client);
  client.send(frame(std::string(1500, ' '), 2, false) + frame(std::string(501, ' '), 0));
  EXPECT_NE(client.read_until(closing(1009)), "");
  client.disconnect();
  expect_clean();
}

TEST_F(ConnectionMessages, ThatArriveTooSlowlyEndTheSocket) {
  limits_.body_idle_timeout = milliseconds(50);
  start();
  SocketClient client(server_->port());
  open(client);
  client.send(frame("123", 2, false));
  EXPECT_EQ(client.read_all(), "");
  expect_clean();
}

TEST_F(ConnectionMessages, OfAnErrorThatStaysEndTheSocket) {
  start();
  SocketClient client(server_->port());
  open(client);
  client.send(frame("missing"));
  EXPECT_NE(client.read_until(closing(1008)), "");
}

TEST_F(ConnectionMessages, OutOfMemoryIsAnsweredAndTheNextCounts) {
  start();
  SocketClient client(server_->port());
  open(client);
  client.send(frame("memory"));
  EXPECT_THAT(client.read_until("}}"), HasSubstr("memory"));
  client.send(frame("1"));
  EXPECT_THAT(client.read_until("POST 1 "), HasSubstr("POST 1 "));
}

TEST_F(ConnectionMessages, OfAClientThatLeavesWhileItIsAnsweredLeaveNothing) {
  start();
  SocketClient client(server_->port());
  open(client);
  client.send(frame("hold"));
  handler_->waiting.get_future().wait();
  client.disconnect();
  handler_->held->respond({.body = "late"});
  handler_->held = nullptr;
  expect_clean();
}

TEST_F(ConnectionMessages, IdleSocketsMakeRoomForOthers) {
  limits_.max_connections = 2;
  start();
  SocketClient first(server_->port()), second(server_->port());
  open(first);
  open(second);
  SocketClient third(server_->port());
  EXPECT_EQ(third.get("/").status, 200);
  EXPECT_NE(first.read_until(closing(1013)), "");
  second.send(frame("1"));
  EXPECT_THAT(second.read_until("POST 1 "), HasSubstr("POST 1 "));
}

TEST_F(ConnectionMessages, EndWithTheServer) {
  start();
  SocketClient idle(server_->port()), busy(server_->port());
  open(idle);
  open(busy);
  busy.send(frame("hold"));
  handler_->waiting.get_future().wait();
  std::promise<void> drained;
  server_->close_after_responses();
  server_->when_idle([&] { drained.set_value(); });
  EXPECT_NE(idle.read_until(closing(1001)), "");
  handler_->held->respond({.body = "the last answer"});
  handler_->held = nullptr;
  EXPECT_THAT(busy.read_until(closing(1001)), HasSubstr("the last answer"));
  EXPECT_EQ(drained.get_future().wait_for(std::chrono::seconds(5)), std::future_status::ready);
}

}  // namespace
}  // namespace valora::server
