// Whichever of a request's allocations fails, only that request ends: with 503, or with its
// connection closed.
#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <future>

#include "base/testing/allocation_faults.h"
#include "server/testing/server_fixture.h"
#include "server/testing/tls_client.h"

namespace valora::server {
namespace {

using testing::chat_body;
using testing::kChat;
using testing::kStream;
using testing::SocketClient;
using valora::testing::AllocationFault;
using valora::testing::SparedThread;

// The engine answers within submit(), so that every allocation counted is the server's.
class MemoryFaults : public testing::ServerTest {
 protected:
  static valora::testing::FakeOptions inline_options() {
    valora::testing::FakeOptions options = testing::echo_options();
    options.answers_inline = true;
    return options;
  }

  explicit MemoryFaults(const std::string& certificate = {}) : certificate_(certificate) {
    options_.tls.certificate_file = certificate;
    options_.limits.max_total_body_bytes = 2'000;
    auto server = Server::start(options_, inline_engine_);
    EXPECT_TRUE(server.ok());
    server_ = std::move(*server);
  }

  ~MemoryFaults() override { server_.reset(); }  // the server calls the engine

  // Makes the n-th allocation fail, for every n until a request needs no more. Each client gets an
  // answer or a closed connection, and the next request works: its body takes nearly the whole body
  // budget, so nothing of the failed request can still be held.
  void fail_each(const std::string& path, const std::string& body, std::string_view expected) {
    const SparedThread this_test;
    int struck = 0, answered = 0;
    for (uint64_t n = 0;; ++n) {
      bool hit = false;
      {
        const AllocationFault fault(n);
        const auto client = connect();
        client->send(SocketClient::post_text(path, body, "Connection: close\r\n"));
        const std::string text = client->read_all();
        EXPECT_FALSE(text.starts_with("HTTP/1.1 500")) << n << text;
        answered += text.starts_with("HTTP/1.1 200") ? 1 : 0;
        hit = fault.struck();
        if (!hit) {
          EXPECT_THAT(text, ::testing::HasSubstr(expected));
        }
      }
      ASSERT_TRUE(next_works()) << n;
      if (!hit) break;
      ++struck;
      ASSERT_LT(n, 20'000u);
    }
    EXPECT_GT(struck, 50);
    EXPECT_LT(answered, struck) << "a fault is seldom without effect";
  }

  std::unique_ptr<SocketClient> connect() const {
    if (certificate_.empty()) return std::make_unique<SocketClient>(port());
    return std::make_unique<testing::TlsClient>(port(), certificate_);
  }

  // A client may see its connection end before the server has given back the bytes.
  bool next_works() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    int status = 0;
    do {
      status = connect()->post(kChat, chat_body(std::string(1'800, 'x'))).status;
    } while (status == 503 && std::chrono::steady_clock::now() < end);
    return status == 200;
  }

  // Everything that requests held is given back: a drain ends.
  void expect_clean() {
    server_->drain();
    auto ended = std::async(std::launch::async, [this] { server_->run_until_stopped(); });
    EXPECT_EQ(ended.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  }

  valora::testing::FakeEngine inline_engine_{inline_options()};
  const std::string certificate_;
};

class TlsMemoryFaults : public MemoryFaults {
 protected:
  TlsMemoryFaults() : MemoryFaults(made_certificate()) { std::signal(SIGPIPE, SIG_IGN); }
  ~TlsMemoryFaults() override { std::filesystem::remove(certificate_); }

  static std::string made_certificate() {
    const std::string path = ::testing::TempDir() + "valora_memory_faults.pem";
    testing::write_certificate(path);
    return path;
  }
};

TEST_F(TlsMemoryFaults, WholeAnswerSurvivesFailedAllocations) {
  fail_each(kChat, chat_body("a b c"), "200 OK");
  expect_clean();
}

TEST_F(MemoryFaults, WholeAnswerSurvivesFailedAllocations) {
  fail_each(kChat, chat_body("a b c", R"("logprobs":true,"top_logprobs":2,"n":2)"), "200 OK");
  expect_clean();
}

TEST_F(MemoryFaults, StreamSurvivesFailedAllocations) {
  fail_each(kChat, chat_body("a b c", kStream), "[DONE]");
  expect_clean();
}

TEST_F(MemoryFaults, RefusedBodySurvivesFailedAllocations) {
  fail_each(kChat, R"({"messages":[{"role":"user","content":[[[{"a":[1,2,{"b":[]}]}]]]}]})", "400");
  expect_clean();
}

TEST_F(MemoryFaults, TokenizeSurvivesFailedAllocations) {
  fail_each("/tokenize", R"({"prompt":"a b c d e f"})", "200 OK");
  expect_clean();
}

TEST_F(MemoryFaults, StreamedToolCallSurvivesFailedAllocations) {
  const char* const call = R"(<tool_call>{\"name\": \"look\", \"arguments\": {}}</tool_call>)";
  const char* const tools =
      R"("tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}],
         "stream":true)";
  fail_each(kChat, chat_body(call, tools), "tool_calls");
  expect_clean();
}

TEST_F(MemoryFaults, ResponseSurvivesFailedAllocations) {
  fail_each("/v1/responses",
            R"({"model":"fake","stream":true,"input":[
              {"type":"function_call","call_id":"1","name":"look","arguments":"{}"},
              {"type":"function_call_output","call_id":"1","output":"seen"},
              {"role":"user","content":"a b c"}]})",
            "response.completed");
  expect_clean();
}

TEST_F(MemoryFaults, EmbeddingSurvivesFailedAllocations) {
  fail_each("/v1/embeddings", R"({"model":"fake","input":["a b","c"]})", "200 OK");
  expect_clean();
}

}  // namespace
}  // namespace valora::server
