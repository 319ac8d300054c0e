// The server over TLS.
#include <csignal>
#include <filesystem>
#include <thread>

#include "server/testing/server_fixture.h"
#include "server/testing/tls_client.h"

namespace valora::server {
namespace {

using std::chrono::milliseconds;
using testing::chat_body;
using ::testing::HasSubstr;
using testing::kChat;
using testing::kStream;
using testing::SocketClient;
using testing::TlsClient;
using testing::write_certificate;

class TlsTest : public testing::ServerTest {
 protected:
  TlsTest() {
    std::signal(SIGPIPE, SIG_IGN);  // clients write to servers that have closed the connection
    write_certificate(file_);
    options_.tls.certificate_file = file_;
  }
  ~TlsTest() override {
    std::filesystem::remove(file_);
    std::filesystem::remove(other_);
  }
  TlsClient client() { return {port(), file_}; }
  std::string refusal() {
    const auto server = Server::start(options_, engine_);
    return server.ok() ? "none" : server.error().message;
  }

  const std::string name_ = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string file_ = ::testing::TempDir() + "valora_tls_" + name_ + ".pem";
  const std::string other_ = ::testing::TempDir() + "valora_tls_other_" + name_ + ".pem";
};

TEST_F(TlsTest, OneConnectionServesWholeAndStreamedAnswers) {
  start();
  EXPECT_THAT(server_->url(), HasSubstr("https://127.0.0.1:"));
  TlsClient client = this->client();
  ASSERT_TRUE(client.secure());
  EXPECT_EQ(client.post(kChat, chat_body("hello")).status, 200);
  client.send(SocketClient::post_text(kChat, chat_body("a b c", kStream)));
  const std::string stream = client.read_until("data: [DONE]\n\n");
  EXPECT_THAT(stream, HasSubstr("\"a\""));
  client.read_until("0\r\n\r\n");
  const std::string large(size_t{3} << 20, 'x');
  EXPECT_THAT(client.post(kChat, chat_body(large)).body, HasSubstr(large));
  client.send(SocketClient::post_text(kChat, chat_body("last"), "Connection: close\r\n"));
  EXPECT_THAT(client.read_all(), HasSubstr("last"));
}

TEST_F(TlsTest, PlainHttpClientIsRefused) {
  start();
  SocketClient plain(port());
  plain.send("GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(plain.read_all(), ::testing::Not(HasSubstr("HTTP/1.1 200")));
  EXPECT_EQ(client().get("/health").status, 200);
}

TEST_F(TlsTest, DisconnectCancelsTheRequest) {
  start();
  {
    TlsClient stream = client();
    stream.send(SocketClient::post_text(kChat, chat_body("!hang", kStream)));
    stream.read_until("!hang");
  }
  engine_.wait_for_cancelled(1);
  TlsClient polite = client();
  EXPECT_EQ(polite.get("/health").status, 200);  // leaves with nothing unread
  polite.send(SocketClient::post_text(kChat, chat_body("!hang")));
  engine_.wait_for_running(1);
  polite.send_shutdown();
  polite.disconnect();
  engine_.wait_for_cancelled(2);
}

TEST_F(TlsTest, CloseNotifyStillGetsTheAnswer) {
  start();
  engine_.hold_requests(true);
  TlsClient client = this->client();
  client.send(SocketClient::post_text(kChat, chat_body("whole")));
  engine_.wait_for_running(1);
  client.send_shutdown();
  EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("100 Continue"));
  engine_.hold_requests(false);
  EXPECT_THAT(client.read_all(), HasSubstr(R"("content":"whole")"));
}

TEST_F(TlsTest, RefusedBodyStillGetsAResponse) {
  options_.limits.max_body_bytes = 1000;
  start();
  TlsClient client = this->client();
  client.send(SocketClient::post_text(kChat, std::string(size_t{1} << 20, 'x')));
  EXPECT_THAT(client.read_all(), HasSubstr("413"));
  EXPECT_TRUE(client.ended_well());
}

TEST_F(TlsTest, PipelinedRequestsKeepTheConnection) {
  start();
  TlsClient client = this->client();
  EXPECT_EQ(client.get("/health").status, 200);  // reads the session tickets, too
  engine_.hold_requests(true);
  client.send(SocketClient::post_text(kChat, chat_body("one")));
  engine_.wait_for_running(1);
  client.send(SocketClient::post_text(kChat, chat_body("two")) +
              SocketClient::post_text(kChat, chat_body("three")));
  EXPECT_FALSE(client.readable(100)) << "the server has read them ahead of the first answer";
  engine_.hold_requests(false);
  for (const char* text : {"one", "two", "three"})
    EXPECT_THAT(client.read_response().body, HasSubstr(text));
  EXPECT_EQ(client.get("/health").status, 200) << "a cancelled read has lost nothing";
}

TEST_F(TlsTest, TimeoutAndDrainAreToldDuringTheBody) {
  options_.limits.body_idle_timeout = milliseconds(100);
  start();
  const std::string begun =
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{";
  TlsClient slow = client();
  slow.send(begun);
  EXPECT_THAT(slow.read_all(), HasSubstr("408"));
  EXPECT_TRUE(slow.ended_well());
  server_->stop();
  options_.limits.body_idle_timeout = std::chrono::minutes(10);
  start();
  TlsClient late = client();
  EXPECT_EQ(late.get("/health").status, 200);
  late.send(begun);
  EXPECT_FALSE(late.readable(100)) << "the server has read it";
  server_->drain();
  EXPECT_THAT(late.read_all(), HasSubstr("the server is draining"));
  EXPECT_TRUE(late.ended_well());
}

TEST_F(TlsTest, IdleConnectionIsClosedInOrder) {
  options_.limits.keep_alive_timeout = milliseconds(50);
  start();
  TlsClient client = this->client();
  EXPECT_EQ(client.get("/health").status, 200);
  EXPECT_EQ(client.read_all(), "");
  EXPECT_TRUE(client.ended_well());
}

TEST_F(TlsTest, StalledReaderTimesOut) {
  options_.limits.write_timeout = milliseconds(50);
  options_.limits.max_outbound_bytes = size_t{1} << 30;
  start();
  TlsClient slow = client();
  slow.send(SocketClient::post_text(kChat, chat_body("!flood", kStream)));
  engine_.wait_for_cancelled(1);
}

TEST_F(TlsTest, SilentClientsTimeOutWithoutBlockingOthers) {
  options_.limits.header_timeout = std::chrono::seconds(2);
  start();
  SocketClient first(port());
  EXPECT_EQ(first.read_all(), "");
  std::vector<std::unique_ptr<SocketClient>> silent;
  for (int i = 0; i < 300; ++i) silent.push_back(std::make_unique<SocketClient>(port()));
  EXPECT_EQ(client().get("/health").status, 200);
}

TEST_F(TlsTest, TooManyHandshakesEndTheLongestOne) {
  options_.limits.header_timeout = std::chrono::minutes(10);
  start();
  std::vector<std::unique_ptr<SocketClient>> silent;
  for (int i = 0; i < 257; ++i) silent.push_back(std::make_unique<SocketClient>(port()));
  EXPECT_EQ(silent.front()->read_all(), "");
  EXPECT_EQ(client().get("/health").status, 200);
  EXPECT_EQ(silent[1]->read_all(), "");
  EXPECT_FALSE(silent[2]->readable(0));
}

TEST_F(TlsTest, NewClientReplacesAnIdleTlsConnection) {
  options_.io_threads = 1;  // so that the first connection counts as idle once it is answered
  options_.limits.max_connections = 1;
  options_.limits.status_connections = 0;
  start();
  TlsClient first = client();
  EXPECT_EQ(first.get("/health").status, 200);
  TlsClient second = client();
  EXPECT_EQ(second.post(kChat, chat_body("x")).status, 200) << "the first one only waited";
  EXPECT_EQ(first.read_all(), "");
  EXPECT_TRUE(first.ended_well());
  second.send(SocketClient::post_text(kChat, chat_body("!hang", kStream)));
  second.read_until("!hang");
  TlsClient third = client();
  third.send(SocketClient::post_text(kChat, std::string(size_t{1} << 20, 'x')));
  EXPECT_THAT(third.read_all(), HasSubstr("503 Service Unavailable")) << "in spite of its body";
  EXPECT_TRUE(third.ended_well());
}

TEST_F(TlsTest, DrainSendsTheWholeAnswer) {
  start();
  engine_.hold_requests(true);
  TlsClient client = this->client();
  const std::string text(size_t{4} << 20, 'x');  // more than the buffers in between hold
  client.send(SocketClient::post_text(kChat, chat_body(text)));
  engine_.wait_for_running(1);
  std::thread waiting([&] { server_->run_until_stopped(); });
  server_->drain();
  engine_.hold_requests(false);
  EXPECT_THAT(client.read_all(), HasSubstr(text));
  waiting.join();
}

TEST_F(TlsTest, StopEndsHandshakesAndConnections) {
  start();
  SocketClient silent(port());
  TlsClient idle = client();
  EXPECT_EQ(idle.get("/health").status, 200);
  const auto began = std::chrono::steady_clock::now();
  server_->stop();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(4));
  EXPECT_EQ(silent.read_all(), "");
  EXPECT_EQ(idle.read_all(), "");
}

TEST_F(TlsTest, ClientCertificatesAreVerified) {
  write_certificate(other_);
  options_.tls.client_ca_file = other_;
  options_.tls.client_certificates = TlsOptions::ClientCertificates::kRequired;
  start();
  EXPECT_EQ(TlsClient(port(), file_, other_).get("/health").status, 200);
  EXPECT_EQ(client().get("/health").status, 0) << "it has none";
  EXPECT_EQ(TlsClient(port(), file_, file_).get("/health").status, 0) << "of no known authority";
  server_->stop();
  options_.tls.client_certificates = TlsOptions::ClientCertificates::kOptional;
  start();
  EXPECT_EQ(client().get("/health").status, 200);
  EXPECT_EQ(TlsClient(port(), file_, file_).get("/health").status, 0);
}

TEST_F(TlsTest, RenewedCertificateIsReloaded) {
  start();
  TlsClient before = client();
  write_certificate(other_);
  std::filesystem::copy_file(other_, file_, std::filesystem::copy_options::overwrite_existing);
  std::this_thread::sleep_for(milliseconds(1100));  // files are checked once per second
  TlsClient after = client();
  EXPECT_TRUE(after.secure());
  EXPECT_NE(after.serial(), before.serial());
  EXPECT_EQ(before.get("/health").status, 200);
  std::filesystem::resize_file(file_, 10);
  std::this_thread::sleep_for(milliseconds(1100));
  EXPECT_EQ(TlsClient(port(), other_).serial(), after.serial()) << "a broken file changes nothing";
}

TEST_F(TlsTest, UnusableFilesAreRefused) {
  options_.tls.key_file = file_;
  options_.tls.certificate_file = "/nowhere.pem";
  EXPECT_THAT(refusal(), HasSubstr("--ssl-certfile /nowhere.pem: No such file"));
  options_.tls.certificate_file = file_;
  write_certificate(other_);
  options_.tls.key_file = other_;
  EXPECT_THAT(refusal(), HasSubstr("key values mismatch"));
  options_.tls.key_file.clear();
  options_.tls.client_certificates = TlsOptions::ClientCertificates::kRequired;
  EXPECT_THAT(refusal(), HasSubstr("--ssl-ca-certs"));
  options_.tls = {.key_file = file_};
  EXPECT_THAT(refusal(), HasSubstr("need --ssl-certfile"));
  options_.tls = {.client_certificates = TlsOptions::ClientCertificates::kRequired};
  EXPECT_THAT(refusal(), HasSubstr("need --ssl-certfile"));
  options_.tls = {.certificate_file = file_, .client_ca_file = other_};
  EXPECT_THAT(refusal(), HasSubstr("needs --ssl-cert-reqs"));
}

}  // namespace
}  // namespace valora::server
