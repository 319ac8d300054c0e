// Streaming, clients that disconnect, and starting and stopping the server.
#include "server/server.h"

#include <sys/resource.h>

#include <thread>

#include "server/testing/server_fixture.h"

namespace valora::server {
namespace {

using std::chrono::milliseconds;
using testing::chat_body;
using testing::echo_options;
using ::testing::HasSubstr;
using testing::kChat;
using testing::kStream;
using testing::ServerTest;
using testing::SocketClient;
using valora::testing::FakeEngine;

TEST(ServerStart, AnswersModelIsLoadingUntilTheEngineIsReady) {
  FakeEngine engine(echo_options());
  auto server = Server::listen({.port = 0, .root_path = "/models/a", .api_keys = {"key"}});
  ASSERT_TRUE(server.ok()) << server.error().message;
  SocketClient client((*server)->port());
  for (const char* path : {"/health", "/ready", "/metrics", "/v1/models", "/nowhere"}) {
    const auto response = client.get(path);
    EXPECT_EQ(response.status, 503) << path;
    EXPECT_TRUE(response.has("Retry-After: 2\r\n"));
    EXPECT_THAT(response.body, HasSubstr("loading the model"));
  }
  EXPECT_EQ(SocketClient((*server)->port()).post(kChat, chat_body("hello")).status, 503);
  for (const char* path : {"/", "/models/a/", "/ui/app.js", "/docs", "/version"})
    EXPECT_EQ(client.get(path).status, 200) << path;
  EXPECT_EQ(client.get("/ui/nothing.js").status, 404);
  ASSERT_TRUE((*server)->serve(engine).ok());
  EXPECT_EQ(client.get("/ready").status, 200);
  EXPECT_EQ(client.get("/ui/app.js").status, 200);
  EXPECT_EQ(client.get("/v1/models").status, 401);
  EXPECT_EQ(client.post(kChat, chat_body("hello"), "Authorization: Bearer key\r\n").status, 200);
  EXPECT_EQ(SocketClient((*server)->port()).get("/models/a/health").status, 200);
}

TEST(ServerStart, KeepsTheAllowedHostsWhileTheModelIsLoaded) {
  auto server = Server::listen({.port = 0, .allowed_hosts = {"example.org"}});
  ASSERT_TRUE(server.ok()) << server.error().message;
  EXPECT_EQ(SocketClient((*server)->port()).get("/ready").status, 421);
  (*server)->stop();  // without ever having had an engine
}

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

TEST_F(ServerTest, DisconnectCancelsTheStream) {
  start();
  SocketClient client(port());
  client.send(SocketClient::post_text(kChat, chat_body("!hang", kStream)));
  client.read_until("!hang");
  client.disconnect();
  engine_.wait_for_cancelled(1);
}

TEST_F(ServerTest, DisconnectCancelsAWaitingRequest) {
  start();
  SocketClient client(port());
  client.send(SocketClient::post_text(kChat, chat_body("!hang")));
  engine_.wait_for_running(1);
  client.disconnect();
  engine_.wait_for_cancelled(1);
}

TEST_F(ServerTest, SlowReaderIsDroppedWithoutAffectingOthers) {
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

TEST_F(ServerTest, StalledReaderTimesOut) {
  options_.limits.write_timeout = milliseconds(50);
  options_.limits.max_outbound_bytes = size_t{1} << 30;
  start();
  SocketClient slow(port(), 4096);
  slow.send(SocketClient::post_text(kChat, chat_body("!flood", kStream)));
  engine_.wait_for_cancelled(1);
}

TEST_F(ServerTest, ThousandIdleConnectionsDoNotDisturbAStream) {
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

TEST(FullQueue, Is429WithRetryAfter) {
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

TEST_F(ServerTest, DrainFinishesRunningRequestsAndRefusesNewOnes) {
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
  server_->run_until_stopped();
  EXPECT_FALSE(SocketClient(port()).connected());
}

TEST_F(ServerTest, DrainDoesNotWaitForUnfinishedBodies) {
  start();
  SocketClient slow(port());
  slow.send(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\nExpect: "
      "100-continue\r\n\r\n");
  slow.read_until("\r\n\r\n");
  server_->drain();
  server_->run_until_stopped();
  EXPECT_THAT(slow.read_all(), HasSubstr("503 Service Unavailable"));
}

TEST_F(ServerTest, DrainTimesOut) {
  options_.drain_timeout = milliseconds(50);
  start();
  SocketClient running(port());
  running.send(SocketClient::post_text(kChat, chat_body("!hang", kStream)));
  running.read_until("!hang");
  server_->drain();
  server_->run_until_stopped();
  engine_.wait_for_cancelled(1);
  EXPECT_THAT(running.read_all(), ::testing::Not(HasSubstr("DONE")));
}

TEST_F(ServerTest, HalfClosedClientGetsItsAnswer) {
  start();
  engine_.hold_requests(true);
  SocketClient client(port());
  client.send(SocketClient::post_text(kChat, chat_body("whole")));
  engine_.wait_for_running(1);
  client.end_sending();
  EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("100 Continue"));
  engine_.hold_requests(false);
  const std::string answer = client.read_all();
  EXPECT_THAT(answer, HasSubstr("200 OK"));
  EXPECT_THAT(answer, HasSubstr("Connection: close"));
  EXPECT_THAT(answer, HasSubstr(R"("content":"whole")"));
  SocketClient stream(port());
  stream.send(SocketClient::post_text(kChat, chat_body("a b", kStream)) +
              SocketClient::post_text(kChat, chat_body("pipelined")));
  stream.end_sending();
  const std::string both = stream.read_all();
  EXPECT_THAT(both, HasSubstr("data: [DONE]\n\n"));
  EXPECT_THAT(both, HasSubstr("pipelined"));
}

TEST_F(ServerTest, DisconnectIsNoticedDespitePipelinedBytes) {
  start();
  SocketClient client(port());
  client.send(SocketClient::post_text(kChat, chat_body("!hang")));
  engine_.wait_for_running(1);
  client.send(std::string(size_t{200} << 10, 'x'));
  client.disconnect();
  engine_.wait_for_cancelled(1);
}

TEST_F(ServerTest, UnreadAnswersStayWithinTheirBudget) {
  constexpr size_t kAnswer = size_t{8} << 20;  // twice what the kernel buffers
  options_.limits.max_total_outbound_bytes = kAnswer * 3 / 2;
  start();
  const std::string text(kAnswer, 'x');
  auto lazy = std::make_unique<SocketClient>(port(), 4096);
  lazy->send(SocketClient::post_text(kChat, chat_body(text)));
  lazy->read_until("200 OK");
  SocketClient second(port());
  const auto refused = second.post(kChat, chat_body(text));
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("Retry-After: "));
  EXPECT_EQ(second.post(kChat, chat_body("small")).status, 200);
  lazy->disconnect();
  int status = 503;
  for (int i = 0; i < 100 && status == 503; ++i)
    status = second.post(kChat, chat_body(text)).status;
  EXPECT_EQ(status, 200);
}

TEST_F(ServerTest, StopClosesAndCancelsEverything) {
  start();
  SocketClient running(port());
  running.send(SocketClient::post_text(kChat, chat_body("!hang", kStream)));
  running.read_until("!hang");
  std::thread waiting([&] { server_->run_until_stopped(); });
  server_->stop();
  waiting.join();
  engine_.wait_for_cancelled(1);
  EXPECT_THAT(running.read_all(), ::testing::Not(HasSubstr("DONE")));
}

TEST_F(ServerTest, ConcurrentStreamsGetTheirOwnAnswers) {
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

TEST(ServerStart, RefusesInvalidOptions) {
  FakeEngine engine(echo_options());
  EXPECT_FALSE(Server::start({.host = "192.0.2.1", .port = 0}, engine)
                   .ok());  // TEST-NET-1, never assigned to a host
  EXPECT_FALSE(Server::start({.port = 0, .io_threads = 0}, engine).ok());
  EXPECT_FALSE(Server::start({.port = 0, .api_keys = {""}}, engine).ok());
  EXPECT_FALSE(Server::start({.port = 0, .allowed_hosts = {"[localhost]"}}, engine).ok());
  auto first = Server::start({.port = 0}, engine);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ((*first)->url(), "http://127.0.0.1:" + std::to_string((*first)->port()));
  const auto second = Server::start({.port = (*first)->port()}, engine);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace valora::server
