// One connection: bodies, headers, limits, timeouts and calls in the wrong order.
#include "server/http/connection.h"

#include "server/testing/server_fixture.h"

namespace valora::server {
namespace {

using std::chrono::milliseconds;
using testing::chat_body;
using ::testing::HasSubstr;
using testing::kChat;
using testing::ServerTest;
using testing::SocketClient;

TEST_F(ServerTest, HugeBodyIsRefusedByItsContentLength) {
  start();
  SocketClient client(port());
  client.send(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1073741824\r\n\r\n");
  const auto response = client.read_response();
  EXPECT_EQ(response.status, 413);
  EXPECT_TRUE(response.has("Connection: close"));
  EXPECT_TRUE(response.has("X-Request-Id: "));
  EXPECT_EQ(Json::parse(response.body)["error"]["type"], "PayloadTooLargeError");
}

TEST_F(ServerTest, RefusalIsDeliveredEvenIfTheHugeBodyIsSent) {
  options_.limits.max_body_bytes = 1000;
  start();
  SocketClient client(port());
  client.send(SocketClient::post_text(kChat, std::string(size_t{8} << 20, 'x')));
  EXPECT_EQ(client.read_response().status, 413);
}

TEST_F(ServerTest, ChunkedBodyIsMeasuredOnArrival) {
  options_.limits.max_body_bytes = 1000;
  start();
  SocketClient client(port());
  client.send(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 5; ++i) client.send("100\r\n" + std::string(256, ' ') + "\r\n");
  EXPECT_EQ(client.read_response().status, 413);
}

TEST_F(ServerTest, ChunkedBodyIsAccepted) {
  start();
  SocketClient client(port());
  client.send(
      "POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "8\r\n{\"prompt\r\n8\r\n\":\"a b\"}\r\n0\r\n\r\n");
  EXPECT_EQ(Json::parse(client.read_response().body)["choices"][0]["text"], "a b");
}

TEST_F(ServerTest, BodiesShareOneMemoryBudget) {
  options_.limits.max_total_body_bytes = 10'000;
  start();
  const std::string padding(9000, ' ');
  engine_.hold_requests(true);
  SocketClient holder(port()), second(port());
  holder.send(SocketClient::post_text(kChat, chat_body("x") + padding));
  engine_.wait_for_running(1);
  const auto refused = second.post(kChat, chat_body("x") + padding);
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("Retry-After: "));
  engine_.hold_requests(false);
  EXPECT_EQ(holder.read_response().status, 200);
  EXPECT_EQ(SocketClient(port()).post(kChat, chat_body("x") + padding).status, 200);
}

TEST_F(ServerTest, ExpectContinueIsAnswered) {
  start();
  SocketClient client(port());
  const std::string body = chat_body("x");
  client.send(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n");
  EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("100 Continue"));
  client.send(body);
  EXPECT_EQ(client.read_response().status, 200);
}

TEST_F(ServerTest, OtherExpectationsAndCodingsAreRefused) {
  start();
  SocketClient client(port());
  EXPECT_EQ(client.post(kChat, chat_body("x"), "Expect: a-miracle\r\n").status, 417);
  SocketClient old(port());
  const std::string body = chat_body("x");
  old.send("POST /v1/chat/completions HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n");
  EXPECT_FALSE(old.readable(50)) << "HTTP/1.0 has no interim answers";
  old.send(body);
  EXPECT_EQ(old.read_response().status, 200);
  const auto coded = SocketClient(port()).post(kChat, "\x1F\x8B", "Content-Encoding: gzip\r\n");
  EXPECT_EQ(coded.status, 415);
  EXPECT_TRUE(coded.has("Accept-Encoding: identity\r\n"));
  EXPECT_THAT(coded.body, HasSubstr("gzip"));
  EXPECT_EQ(SocketClient(port()).post(kChat, body, "Content-Encoding: identity\r\n").status, 200);
}

TEST_F(ServerTest, ChunkExtensionsAndTrailersAreBounded) {
  options_.limits.max_header_bytes = 2'000;
  start();
  const std::string head =
      "POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string body = "8\r\n{\"prompt\r\n8\r\n\":\"a b\"}\r\n";
  const auto status = [&](const std::string& chunks) {
    SocketClient client(port());
    client.send(head + chunks);
    return client.read_response().status;
  };
  EXPECT_EQ(status("8;a=b\r\n{\"prompt\r\n8;c=\"d\"\r\n\":\"a b\"}\r\n0;e\r\nX-A: b\r\n\r\n"), 200);
  EXPECT_EQ(status("8;a=" + std::string(2'000, 'b') + "\r\n"), 431);
  EXPECT_EQ(status("8;a=" + std::string(1'000'000, 'b') + "\r\n"), 431);
  std::string many;
  for (int i = 0; i < 100; ++i) many += "1;a=" + std::string(30, 'b') + "\r\n \r\n";
  EXPECT_EQ(status(many), 431) << "together";
  EXPECT_EQ(status(body + "0;a=" + std::string(2'000, 'b') + "\r\n\r\n"), 431);
  EXPECT_EQ(status(body + "0\r\nX-A: " + std::string(2'000, 'b') + "\r\n\r\n"), 431);
  EXPECT_EQ(status(body + "0\r\nX-A: " + std::string(1'000'000, 'b') + "\r\n\r\n"), 431);
}

TEST_F(ServerTest, EmptyLinesBeforeARequestCountAgainstTheHeaderTimeout) {
  options_.limits.header_timeout = milliseconds(100);
  start();
  SocketClient drip(port());
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 200 && !drip.readable(20); ++i) drip.send("\r\n");
  EXPECT_LT(std::chrono::steady_clock::now() - began, milliseconds(3'900));
  EXPECT_TRUE(drip.readable(0));
  SocketClient client(port());
  client.send("\r\n\r\n");
  EXPECT_EQ(client.get("/health").status, 200);
  EXPECT_EQ(client.get("/health").status, 200);
}

TEST_F(ServerTest, DisallowedHostIsRefused) {
  options_.allowed_hosts = {"localhost", "127.0.0.1:80", "*.example.org"};
  start();
  const auto status = [&](const std::string& target, const std::string& host) {
    SocketClient client(port());
    client.send("GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    return client.read_response().status;
  };
  for (const char* host : {"localhost", "LOCALHOST:8000", "127.0.0.1:80", "a.example.org"})
    EXPECT_EQ(status("/v1/models", host), 200) << host;
  for (const char* host :
       {"evil.example", "127.0.0.1", "127.0.0.1:8000", "example.org", "", "localhost.evil.example"})
    EXPECT_EQ(status("/v1/models", host), 421) << host;
  for (const char* host : {"evil.example:localhost", "[localhost]", "user@localhost", "[localhost"})
    EXPECT_EQ(status("/v1/models", host), 400) << host;
  EXPECT_EQ(status("http://evil@localhost/v1/models", "localhost"), 400);
  EXPECT_EQ(status("http://evil.example/v1/models", "localhost"), 421);
  EXPECT_EQ(status("http://localhost/v1/models", "evil.example"), 200);
}

TEST_F(ServerTest, SlowHeadersAndBodiesTimeOut) {
  options_.limits.header_timeout = milliseconds(50);
  options_.limits.body_idle_timeout = milliseconds(50);
  start();
  SocketClient loris(port());
  loris.send("POST /v1/chat/completions HTTP/1.1\r\nX-A: ");
  const auto header = loris.read_response();
  EXPECT_EQ(header.status, 408);
  EXPECT_TRUE(header.has("Connection: close"));
  SocketClient body(port());
  body.send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{");
  EXPECT_EQ(body.read_response().status, 408);
  expect_alive();
}

TEST_F(ServerTest, IdleConnectionsTimeOut) {
  options_.limits.keep_alive_timeout = milliseconds(50);
  start();
  SocketClient never(port());
  EXPECT_EQ(never.read_all(), "");
  SocketClient used(port());
  EXPECT_EQ(used.get("/health").status, 200);
  EXPECT_EQ(used.read_all(), "");
}

TEST_F(ServerTest, BadBodyIs400AndKeepsTheConnection) {
  start();
  SocketClient client(port());
  for (const std::string& body :
       {std::string("{"), std::string(100'000, '['), std::string("[]"), std::string(),
        std::string("{\"messages\":[{\"role\":\"user\",\"content\":\"\xFF\"}]}"),
        std::string(R"({"messages":[{"role":"user","content":5}]})")}) {
    const auto response = client.post(kChat, body);
    EXPECT_EQ(response.status, 400) << body.substr(0, 50);
    EXPECT_EQ(Json::parse(response.body)["error"]["code"], 400);
  }
  EXPECT_EQ(client.post(kChat, chat_body("fine")).status, 200);
}

TEST_F(ServerTest, PipelinedRequestsAreAnsweredInOrder) {
  start();
  SocketClient client(port());
  client.send(SocketClient::post_text(kChat, chat_body("one")) + "\r\n" +
              SocketClient::post_text(kChat, chat_body("two")));
  EXPECT_THAT(client.read_response().body, HasSubstr("one"));
  EXPECT_THAT(client.read_response().body, HasSubstr("two"));
}

TEST_F(ServerTest, PipelinedGarbageIs400AfterTheValidAnswer) {
  start();
  SocketClient client(port());
  client.send(SocketClient::post_text(kChat, chat_body("one")) + "\x16\x03\x01 garbage\r\n\r\n");
  EXPECT_EQ(client.read_response().status, 200);
  const auto refused = client.read_response();
  EXPECT_EQ(refused.status, 400);
  EXPECT_TRUE(refused.has("Connection: close"));
  expect_alive();
}

TEST_F(ServerTest, LongHeadersAndTargetsAreRefused) {
  start();
  SocketClient header(port());
  header.send("GET /health HTTP/1.1\r\nX-A: " + std::string(100'000, 'a') + "\r\n\r\n");
  EXPECT_EQ(header.read_response().status, 431);
  SocketClient target(port());
  EXPECT_EQ(target.get("/" + std::string(10'000, 'a')).status, 414);
  SocketClient escape(port());
  EXPECT_EQ(escape.get("/v1/models/%zz").status, 400);
}

TEST_F(ServerTest, UnknownPathsAreRefusedBeforeTheirBody) {
  start();
  SocketClient client(port());
  client.send("POST /nope HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n");
  const auto response = client.read_response();
  EXPECT_EQ(response.status, 404);
  EXPECT_TRUE(response.has("Connection: close"));
}

TEST_F(ServerTest, KeyIsCheckedBeforeTheBodyIsRead) {
  options_.api_keys = {"secret"};
  start();
  SocketClient stranger(port());
  stranger.send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n");
  const auto refused = stranger.read_response();
  EXPECT_EQ(refused.status, 401);
  EXPECT_TRUE(refused.has("WWW-Authenticate: Bearer"));
  SocketClient friendly(port());
  EXPECT_EQ(friendly.post(kChat, chat_body("x"), "Authorization: Bearer secret\r\n").status, 200);
  EXPECT_EQ(friendly.get("/health").status, 200);
}

TEST_F(ServerTest, CorsHeadersAreOnResponsesAndErrors) {
  options_.cors_allowed_origins = {"https://a.example"};
  start();
  SocketClient client(port());
  const std::string origin = "Origin: https://a.example\r\n";
  const std::string allow = "Access-Control-Allow-Origin: https://a.example\r\n";
  EXPECT_TRUE(client.get("/v1/models", origin).has(allow));
  EXPECT_TRUE(client.post(kChat, "{", origin).has(allow));
  client.send("OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: x\r\n" + origin + "\r\n");
  const auto preflight = client.read_response();
  EXPECT_EQ(preflight.status, 204);
  EXPECT_TRUE(preflight.has(allow));
}

TEST_F(ServerTest, HeadReturnsHeadersOnly) {
  start();
  SocketClient client(port());
  client.send("HEAD /v1/models HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.read_response(false).status, 200);
  EXPECT_EQ(client.get("/health").status, 200);
}

TEST_F(ServerTest, BodySentByteByByteTimesOut) {
  options_.limits.body_timeout = milliseconds(200);
  start();
  SocketClient drip(port());
  drip.send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n");
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 100 && !drip.readable(20); ++i) drip.send(" ");
  EXPECT_EQ(drip.read_response().status, 408);
  EXPECT_LT(std::chrono::steady_clock::now() - began, milliseconds(1900));
  expect_alive();
}

TEST_F(ServerTest, BodyTimeoutGrowsWithItsSize) {
  options_.limits.body_timeout = milliseconds(100);
  options_.limits.min_body_rate = size_t{100} << 10;
  start();
  SocketClient slow(port());
  const std::string body = chat_body("x") + std::string(size_t{60} << 10, ' ');
  slow.send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: " +
            std::to_string(body.size()) + "\r\n\r\n" + body.substr(0, size_t{50} << 10));
  EXPECT_FALSE(slow.readable(250));
  slow.send(body.substr(size_t{50} << 10));
  EXPECT_EQ(slow.read_response().status, 200);
}

TEST_F(ServerTest, UnfinishedBodiesAreLimitedPerClient) {
  options_.limits.max_unfinished_body_bytes = 10'000;
  start();
  const std::string part(9000, ' ');
  SocketClient holder(port()), second(port());
  holder.send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 10000\r\n\r\n" +
              part);
  EXPECT_FALSE(holder.readable(50));
  second.send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 10000\r\n\r\n" +
              part);
  EXPECT_EQ(second.read_response().status, 429);
  engine_.hold_requests(true);  // a complete body no longer counts
  holder.send(std::string(1000 - chat_body("x").size(), ' ') + chat_body("x"));
  engine_.wait_for_running(1);
  SocketClient third(port());
  const std::string body = chat_body("x") + part;
  third.send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: " +
             std::to_string(body.size()) + "\r\n\r\n" + body);
  EXPECT_FALSE(third.readable(50)) << "while the first is answered";
  engine_.hold_requests(false);
  EXPECT_EQ(holder.read_response().status, 200);
  EXPECT_EQ(third.read_response().status, 200);
}

TEST_F(ServerTest, StatusPagesAnswerWhenAllConnectionsAreTaken) {
  options_.limits.max_connections = 2;
  start();
  SocketClient first(port()), second(port());
  for (SocketClient* client : {&first, &second}) {
    client->send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{");
    EXPECT_FALSE(client->readable(50));
  }
  SocketClient health(port());
  const auto healthy = health.get("/health");
  EXPECT_EQ(healthy.status, 200);
  EXPECT_TRUE(healthy.has("Connection: close"));
  EXPECT_EQ(SocketClient(port()).get("/metrics").status, 200);
  const auto refused = SocketClient(port()).post(kChat, chat_body("x"));
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("Retry-After: "));
  SocketClient silent(port());
  EXPECT_THAT(silent.read_all(), ::testing::AnyOf("", HasSubstr("408")));  // within seconds
}

}  // namespace
}  // namespace valora::server
