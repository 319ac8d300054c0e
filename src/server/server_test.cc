// The whole server over real sockets, with the scripted engine.
#include "server/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <thread>

#include "base/json.h"
#include "server/testing/echo_script.h"
#include "server/testing/socket_client.h"

namespace valora::server {
namespace {

using std::chrono::milliseconds;
using testing::echo_options;
using ::testing::HasSubstr;
using testing::SocketClient;
using valora::testing::FakeEngine;

constexpr const char* kChat = "/v1/chat/completions";

std::string chat_body(const std::string& text, const std::string& fields = {}) {
  return R"({"messages":[{"role":"user","content":")" + text + "\"}]" +
         (fields.empty() ? "" : ",") + fields + "}";
}
const std::string kStream = R"("stream":true)";

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
  FakeEngine engine_{echo_options()};
  std::unique_ptr<Server> server_;
};

TEST_F(ServerTest, AnswersSeveralRequestsOnOneConnection) {
  start();
  SocketClient client(port());
  for (const char* text : {"first", "second"}) {
    const auto response = client.post(kChat, chat_body(text), "X-Request-Id: mine\r\n");
    EXPECT_EQ(response.status, 200);
    EXPECT_TRUE(response.has("X-Request-Id: mine\r\n"));
    EXPECT_TRUE(response.has("Connection: keep-alive"));
    const Json answer = Json::parse(response.body);
    EXPECT_EQ(answer["id"], "chatcmpl-mine");
    EXPECT_EQ(answer["choices"][0]["message"]["content"], text);
  }
}

TEST_F(ServerTest, StreamsInChunksAndKeepsTheConnection) {
  start();
  SocketClient client(port());
  client.send(SocketClient::post_text(kChat, chat_body("a b c", kStream)));
  const auto head = client.read_response(false);
  EXPECT_TRUE(head.has("Transfer-Encoding: chunked"));
  EXPECT_TRUE(head.has("Content-Type: text/event-stream"));
  const std::string stream = client.read_until("0\r\n\r\n");
  EXPECT_THAT(stream, HasSubstr(R"("delta":{"role":"assistant","content":"a"})"));
  EXPECT_THAT(stream, HasSubstr("data: [DONE]\n\n"));
  EXPECT_EQ(client.get("/health").status, 200);
}

TEST_F(ServerTest, StreamsToAnOldClientUntilTheEnd) {
  start();
  SocketClient client(port());
  const std::string body = chat_body("a b", kStream);
  client.send("POST /v1/chat/completions HTTP/1.0\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n");
  client.send(body);
  const std::string all = client.read_all();
  EXPECT_THAT(all, ::testing::Not(HasSubstr("chunked")));
  EXPECT_TRUE(all.ends_with("data: [DONE]\n\n"));
}

TEST_F(ServerTest, ALeavingClientCancelsItsStream) {
  start();
  SocketClient client(port());
  client.send(SocketClient::post_text(kChat, chat_body("!hang", kStream)));
  client.read_until("!hang");
  client.disconnect();
  engine_.wait_for_cancelled(1);
}

TEST_F(ServerTest, ALeavingClientCancelsItsWaitingRequestToo) {
  start();
  SocketClient client(port());
  client.send(SocketClient::post_text(kChat, chat_body("!hang")));
  engine_.wait_for_running(1);
  client.disconnect();
  engine_.wait_for_cancelled(1);
}

TEST_F(ServerTest, ASlowReaderIsDroppedAndNobodyElse) {
  options_.limits.max_outbound_bytes = size_t{256} << 10;
  start();
  SocketClient good(port());
  good.send(SocketClient::post_text(kChat, chat_body("!hang", kStream)));
  good.read_until("!hang");
  SocketClient slow(port(), 4096);
  slow.send(SocketClient::post_text(kChat, chat_body("!flood", kStream)));
  engine_.wait_for_cancelled(1);
  engine_.release_hanging();
  EXPECT_THAT(good.read_until("0\r\n\r\n"), HasSubstr("[DONE]"));
}

TEST_F(ServerTest, AStalledReaderIsDroppedInTime) {
  options_.limits.write_timeout = milliseconds(50);
  options_.limits.max_outbound_bytes = size_t{1} << 30;
  start();
  SocketClient slow(port(), 4096);
  slow.send(SocketClient::post_text(kChat, chat_body("!flood", kStream)));
  engine_.wait_for_cancelled(1);
}

TEST_F(ServerTest, AHugeBodyIsRefusedByItsLengthAlone) {
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

TEST_F(ServerTest, AHugeBodySentAllTheSameStillGetsItsAnswer) {
  options_.limits.max_body_bytes = 1000;
  start();
  SocketClient client(port());
  client.send(SocketClient::post_text(kChat, std::string(size_t{8} << 20, 'x')));
  EXPECT_EQ(client.read_response().status, 413);
}

TEST_F(ServerTest, AChunkedBodyIsCountedAsItComes) {
  options_.limits.max_body_bytes = 1000;
  start();
  SocketClient client(port());
  client.send(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 5; ++i) client.send("100\r\n" + std::string(256, ' ') + "\r\n");
  EXPECT_EQ(client.read_response().status, 413);
}

TEST_F(ServerTest, AChunkedBodyIsRead) {
  start();
  SocketClient client(port());
  client.send(
      "POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "8\r\n{\"prompt\r\n8\r\n\":\"a b\"}\r\n0\r\n\r\n");
  EXPECT_EQ(Json::parse(client.read_response().body)["choices"][0]["text"], "a b");
}

TEST_F(ServerTest, BodiesTogetherStayWithinTheirBudget) {
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

TEST_F(ServerTest, IdleConnectionsAreClosedInTime) {
  options_.limits.keep_alive_timeout = milliseconds(50);
  start();
  SocketClient never(port());
  EXPECT_EQ(never.read_all(), "");
  SocketClient used(port());
  EXPECT_EQ(used.get("/health").status, 200);
  EXPECT_EQ(used.read_all(), "");
}

TEST_F(ServerTest, BadBodiesAre400AndTheConnectionGoesOn) {
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

TEST_F(ServerTest, PipelinedGarbageIsA400AfterTheGoodAnswer) {
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

TEST_F(ServerTest, AuthComesBeforeTheBody) {
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

TEST_F(ServerTest, HeadHasTheHeaderOnly) {
  start();
  SocketClient client(port());
  client.send("HEAD /v1/models HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.read_response(false).status, 200);
  EXPECT_EQ(client.get("/health").status, 200);
}

TEST_F(ServerTest, MoreConnectionsThanAllowedAre503) {
  options_.limits.max_connections = 2;
  start();
  SocketClient first(port()), second(port());
  EXPECT_EQ(first.get("/health").status, 200);
  EXPECT_EQ(second.get("/health").status, 200);
  SocketClient third(port());
  EXPECT_THAT(third.read_all(), HasSubstr("503 Service Unavailable"));
  EXPECT_EQ(first.get("/health").status, 200);
}

TEST_F(ServerTest, AThousandIdleConnectionsDisturbNoStream) {
  constexpr int kIdle = 1000;
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_max < 4 * kIdle) GTEST_SKIP() << "too few files may be open";
  files.rlim_cur = std::max<rlim_t>(files.rlim_cur, 4 * kIdle);
  setrlimit(RLIMIT_NOFILE, &files);
  start();
  SocketClient stream(port());
  stream.send(SocketClient::post_text(kChat, chat_body("!hang", kStream)));
  stream.read_until("!hang");
  std::vector<std::unique_ptr<SocketClient>> idle;
  for (int i = 0; i < kIdle; ++i) {
    idle.push_back(std::make_unique<SocketClient>(port()));
    if (i % 2) idle.back()->send("POST /v1/chat");
  }
  expect_alive();
  engine_.release_hanging();
  EXPECT_THAT(stream.read_until("0\r\n\r\n"), HasSubstr("[DONE]"));
}

TEST(FullQueue, IsA429WithRetryAfter) {
  FakeEngine engine(echo_options(1));
  auto server = Server::start({.port = 0}, engine);
  ASSERT_TRUE(server.ok());
  SocketClient first((*server)->port());
  first.send(SocketClient::post_text(kChat, chat_body("!hang", kStream)));
  first.read_until("!hang");
  SocketClient second((*server)->port());
  const auto refused = second.post(kChat, chat_body("x"));
  EXPECT_EQ(refused.status, 429);
  EXPECT_TRUE(refused.has("Retry-After: "));
  EXPECT_EQ(Json::parse(refused.body)["error"]["type"], "RateLimitError");
}

TEST_F(ServerTest, ADrainFinishesWhatRunsAndRefusesTheRest) {
  start();
  SocketClient running(port()), idle(port());
  EXPECT_EQ(idle.get("/health").status, 200);
  running.send(SocketClient::post_text(kChat, chat_body("!hang", kStream)));
  running.read_until("!hang");
  server_->drain();
  EXPECT_EQ(idle.read_all(), "");
  EXPECT_EQ(SocketClient(port()).get("/health").status, 503);
  const auto refused = SocketClient(port()).post(kChat, chat_body("x"));
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("Connection: close"));
  engine_.release_hanging();
  EXPECT_THAT(running.read_all(), HasSubstr("data: [DONE]\n\n\r\n0\r\n\r\n"));
  server_->run_until_stopped(false);
  EXPECT_FALSE(SocketClient(port()).connected());
}

TEST_F(ServerTest, ADrainWaitsForNobodysBody) {
  start();
  SocketClient slow(port());
  slow.send(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\nExpect: "
      "100-continue\r\n\r\n");
  slow.read_until("\r\n\r\n");
  server_->drain();
  server_->run_until_stopped(false);
  EXPECT_THAT(slow.read_all(), HasSubstr("503 Service Unavailable"));
}

TEST_F(ServerTest, StopClosesAndCancelsEverything) {
  start();
  SocketClient running(port());
  running.send(SocketClient::post_text(kChat, chat_body("!hang", kStream)));
  running.read_until("!hang");
  std::thread waiting([&] { server_->run_until_stopped(false); });
  server_->stop();
  waiting.join();
  engine_.wait_for_cancelled(1);
  EXPECT_THAT(running.read_all(), ::testing::Not(HasSubstr("DONE")));
}

TEST_F(ServerTest, ManyStreamsAtOnceEachGetTheirOwnAnswer) {
  start();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([this, t] {
      SocketClient client(port());
      for (int i = 0; i < 10; ++i) {
        const std::string mine = "t" + std::to_string(t) + "i" + std::to_string(i);
        client.send(SocketClient::post_text(kChat, chat_body("say " + mine, i % 2 ? kStream : "")));
        if (i % 2)
          EXPECT_THAT(client.read_until("0\r\n\r\n"), HasSubstr(mine));
        else
          EXPECT_THAT(client.read_response().body, HasSubstr(mine));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(ServerStart, RefusesOptionsThatMakeNoSense) {
  FakeEngine engine(echo_options());
  EXPECT_FALSE(Server::start({.host = "192.0.2.1", .port = 0}, engine)
                   .ok());  // TEST-NET-1: nobody's address
  EXPECT_FALSE(Server::start({.port = 0, .io_threads = 0}, engine).ok());
  EXPECT_FALSE(Server::start({.port = 0, .api_keys = {""}}, engine).ok());
  auto first = Server::start({.port = 0}, engine);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ((*first)->url(), "http://127.0.0.1:" + std::to_string((*first)->port()));
  const auto second = Server::start({.port = (*first)->port()}, engine);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace valora::server
