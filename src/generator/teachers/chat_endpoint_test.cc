#include "generator/teachers/chat_endpoint.h"

#include <gtest/gtest.h>

#include "media/testing/http_host.h"

namespace valora::generator {
namespace {

using media::testing::HttpHost;

std::string response(int status, const std::string& body) {
  return "HTTP/1.1 " + std::to_string(status) +
         " X\r\nContent-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" +
         body;
}

EndpointOptions endpoint(const HttpHost& host, const std::string& path) {
  return {.url = host.url(path),
          .api_key = "secret",
          .timeout_seconds = 20,
          .retries = 2,
          .retry_seconds = 0.001};
}

const Json kBody = {{"model", "m"}};

TEST(ChatEndpoint, ReadsTextAndLogprobs) {
  const HttpHost host(
      {{"/v1/chat/completions",
        response(
            200,
            R"({"choices": [{"message": {"content": "cat"}, "logprobs": {"content": [{"logprob": -0.5}, {"logprob": 0}]}}]})")},
       {"/plain/chat/completions",
        response(200, R"({"choices": [{"message": {"content": "dog"}, "logprobs": null}]})")}});
  const auto reply = ask_chat(endpoint(host, "/v1/"), kBody, {});
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_EQ(reply->text, "cat");
  EXPECT_EQ(reply->logprobs, (std::vector<float>{-0.5f, 0}));
  const auto plain = ask_chat(endpoint(host, "/plain"), kBody, {});
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  EXPECT_TRUE(plain->logprobs.empty());
}

TEST(ChatEndpoint, RetriesALimitedNumberOfTimes) {
  for (const int status : {429, 500, 503}) {
    const HttpHost host(
        {{"/v1/chat/completions", response(status, R"({"error": {"message": "busy"}})")}});
    const auto reply = ask_chat(endpoint(host, "/v1"), kBody, {});
    ASSERT_FALSE(reply.ok());
    EXPECT_EQ(reply.error().code, ErrorCode::kUnavailable);
    EXPECT_NE(reply.error().message.find("/v1/chat/completions: gave up after 3 tries: HTTP " +
                                         std::to_string(status) + ": busy"),
              std::string::npos)
        << reply.error().message;
    EXPECT_EQ(host.requests(), 3);
  }
}

TEST(ChatEndpoint, RefusalIsNotRetriedAndHidesTheKey) {
  const HttpHost host(
      {{"/v1/chat/completions", response(401, R"({"error": {"message": "no such key"}})")}});
  const auto reply = ask_chat(endpoint(host, "/v1"), kBody, {});
  ASSERT_FALSE(reply.ok());
  EXPECT_NE(reply.error().message.find("HTTP 401: no such key"), std::string::npos)
      << reply.error().message;
  EXPECT_EQ(reply.error().message.find("secret"), std::string::npos);
  EXPECT_EQ(host.requests(), 1);
}

TEST(ChatEndpoint, RefusesAMalformedAnswer) {
  for (const char* body : {"", "[]", "{}", R"({"choices": []})",
                           R"({"choices": [{"message": {"content": null}}]})", "{"}) {
    const HttpHost host({{"/v1/chat/completions", response(200, body)}});
    EXPECT_FALSE(ask_chat(endpoint(host, "/v1"), kBody, {}).ok()) << body;
  }
}

TEST(ChatEndpoint, StopEndsTheWait) {
  const HttpHost host({{"/v1/chat/completions", response(503, "busy")}});
  std::stop_source stop;
  stop.request_stop();
  EndpointOptions slow = endpoint(host, "/v1");
  slow.retry_seconds = 3600;
  EXPECT_EQ(ask_chat(slow, kBody, stop.get_token()).error().code, ErrorCode::kCancelled);
}

TEST(ChatEndpoint, TimesOut) {
  const HttpHost host({});
  EndpointOptions silent = endpoint(host, "");
  silent.url = host.silent_url();
  silent.timeout_seconds = 0.05;
  silent.retries = 1;
  EXPECT_NE(ask_chat(silent, kBody, {}).error().message.find("gave up after 2 tries"),
            std::string::npos);
}

}  // namespace
}  // namespace valora::generator
