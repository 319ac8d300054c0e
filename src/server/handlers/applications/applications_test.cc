// Limits and metrics of applications, and their listing.
#include "server/testing/applications_fixture.h"

namespace valora::server {
namespace {

using std::chrono::milliseconds;
using testing::header_of;
using testing::WithApplications;

class ApplicationLimits : public WithApplications {};
class ApplicationOutcomes : public WithApplications {};

TEST_F(ApplicationLimits, WaitingRequestsAreLimited) {
  options_.applications[0].max_waiting = 2;
  engine_.hold_requests(true);
  const auto first = begin_with("retrieval");
  // Several prompts count as one request.
  const auto second =
      begin("POST", "/v1/completions", R"({"prompt":["a","b"],"user":"retrieval"})");
  const auto refused = chat_with("retrieval");
  EXPECT_EQ(refused->response.status, 429);
  EXPECT_EQ(refused->json()["error"]["type"], "RateLimitError");
  EXPECT_EQ(header_of(*refused, "Retry-After"), "1");
  EXPECT_EQ(engine_.requests().size(), 3u);
  EXPECT_EQ(outcomes("retrieval", "refused"), 1);
  const auto other = begin_with("video");
  const auto none = begin("POST", "/v1/chat/completions", chat_body("x", ""));
  engine_.hold_requests(false);
  for (const auto& exchange : {first, second, other, none}) {
    exchange->run();
    EXPECT_EQ(exchange->response.status, 200);
  }
  EXPECT_EQ(chat_with("retrieval")->response.status, 200);
}

TEST_F(ApplicationLimits, RequestCountsAsWaitingUntilItsFirstToken) {
  options_.applications[0].max_waiting = 1;
  const auto hanging = begin_with("retrieval", "!hang", R"("stream":true)");
  EXPECT_EQ(chat_with("retrieval")->response.status, 429);
  hanging->run_until_streaming();
  EXPECT_EQ(chat_with("retrieval")->response.status, 200);
  hanging->leave();
  EXPECT_EQ(chat_with("retrieval")->response.status, 200);
}

TEST_F(ApplicationLimits, FailedRequestNoLongerCountsAsWaiting) {
  options_.applications[0].max_waiting = 1;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(chat_with("retrieval", "!fail-now")->response.status, 400);
    EXPECT_EQ(chat_with("retrieval", "x", R"("model":"nobody")")->response.status, 404);
    EXPECT_EQ(call("POST", "/classify", R"({"model":"birds","input":"x","user":"retrieval"})")
                  ->response.status,
              200);
  }
}

TEST_F(ApplicationLimits, RateIsATokenBucket) {
  options_.applications[0].rate = 2;
  EXPECT_EQ(chat_with("retrieval")->response.status, 200);
  EXPECT_EQ(chat_with("retrieval")->response.status, 200);
  EXPECT_EQ(chat_with("retrieval")->response.status, 429);
  EXPECT_EQ(chat_with("video")->response.status, 200);
  clock_.advance(milliseconds(500));
  EXPECT_EQ(chat_with("retrieval")->response.status, 200);
  EXPECT_EQ(chat_with("retrieval")->response.status, 429);
  EXPECT_EQ(outcomes("retrieval", "refused"), 2);
  EXPECT_EQ(outcomes("retrieval", "ok"), 3);
}

TEST_F(ApplicationLimits, RetryAfterIsTimeUntilNextBucketToken) {
  options_.applications[0].rate = 0.125;
  EXPECT_EQ(chat_with("retrieval")->response.status, 200);
  EXPECT_EQ(header_of(*chat_with("retrieval"), "Retry-After"), "8");
  clock_.advance(milliseconds(5500));
  EXPECT_EQ(header_of(*chat_with("retrieval"), "Retry-After"), "3");
  clock_.advance(milliseconds(2400));
  EXPECT_EQ(header_of(*chat_with("retrieval"), "Retry-After"), "1");
}

TEST_F(ApplicationOutcomes, LatenciesAreComparedWithTargets) {
  chat_with("retrieval", "a b c");    // 0.3 s per further token
  chat_with("retrieval", "a b c d");  // 0.2 s
  chat_with("retrieval", "a");        // no further token
  chat_with("video", "a b c");
  EXPECT_EQ(outcomes("retrieval", "ok"), 3);
  EXPECT_EQ(met("retrieval", "ttft"), 3);
  EXPECT_EQ(missed("retrieval", "ttft"), 0);
  EXPECT_EQ(met("retrieval", "tpot"), 2);
  EXPECT_EQ(missed("retrieval", "tpot"), 1);
  EXPECT_EQ(met("retrieval", "e2e"), -1);  // no target
  EXPECT_EQ(missed("video", "ttft"), 1);
  EXPECT_EQ(met("video", "e2e"), 1);
  EXPECT_EQ(met("video", "tpot"), -1);
}

TEST_F(ApplicationOutcomes, ParallelSequencesDoNotShortenTimePerToken) {
  chat_with("retrieval", "a b c", R"("n":4)");
  EXPECT_EQ(missed("retrieval", "tpot"), 1);
}

TEST_F(ApplicationOutcomes, SlowestPromptDecidesTheOutcomeOfABatch) {
  call("POST", "/v1/completions", R"({"prompt":["a b c d","a b c"],"user":"retrieval"})");
  EXPECT_EQ(outcomes("retrieval", "ok"), 1);
  EXPECT_EQ(met("retrieval", "ttft"), 1);
  EXPECT_EQ(missed("retrieval", "tpot"), 1);
  EXPECT_EQ(met("retrieval", "tpot"), 0);
}

TEST_F(ApplicationOutcomes, FailedRequestsMissTheirTargets) {
  chat_with("retrieval", "!fail-now");
  chat_with("retrieval", "!fail in the middle", R"("stream":true)");
  chat_with("retrieval", "!unfinished");
  const auto left = begin_with("retrieval", "!hang", R"("stream":true)");
  left->run_until_streaming();
  left->leave();
  EXPECT_EQ(outcomes("retrieval", "error"), 4);
  EXPECT_EQ(outcomes("retrieval", "ok"), 0);
  EXPECT_EQ(missed("retrieval", "ttft"), 4);
  EXPECT_EQ(missed("retrieval", "tpot"), 4);
  EXPECT_EQ(met("retrieval", "ttft"), 0);
}

TEST_F(ApplicationOutcomes, FullServerQueueCountsAsARefusal) {
  options_.max_waiting = 1;
  engine_.hold_requests(true);
  const auto first = begin_with("retrieval");
  EXPECT_EQ(chat_with("retrieval")->response.status, 429);
  EXPECT_EQ(outcomes("retrieval", "refused"), 1);
  EXPECT_EQ(missed("retrieval", "ttft"), 0);
  engine_.hold_requests(false);
  first->run();
  EXPECT_EQ(outcomes("retrieval", "ok"), 1);
}

TEST_F(ApplicationOutcomes, ListShowsTargetsLimitsAndAttainment) {
  options_.applications[1].max_waiting = 4;
  options_.applications[1].rate = 2.5;
  const Json none = Json::parse(R"({"ttft":null,"tpot":null,"e2e":null})");
  Json list = call("GET", "/v1/applications")->json();
  EXPECT_EQ(list["object"], "list");
  ASSERT_EQ(list["data"].size(), 2u);
  EXPECT_EQ(list["data"][0]["attainment"], none);
  EXPECT_EQ(list["data"][0]["service_seconds"], 1.5);
  EXPECT_EQ(list["data"][1], Json::parse(R"({"name":"video","models":["birds"],
                            "targets":{"ttft":0.3,"tpot":null,"e2e":1.5},"priority":0,
                            "share":1.0,"max_waiting":4,"rate":2.5,"waiting":0,
                            "service_seconds":0,
                            "attainment":{"ttft":null,"tpot":null,"e2e":null},
                            "requests":{"ok":0,"error":0,"refused":0},
                            "latency":{"answers":0,"ttft":null,"tpot":null,"e2e":null}})"));
  chat_with("retrieval", "a b c");
  chat_with("retrieval", "a b c d");
  const auto waiting = begin_with("retrieval", "!hang", R"("stream":true)");
  list = call("GET", "/v1/applications")->json();
  EXPECT_EQ(list["data"][0]["waiting"], 1);
  EXPECT_EQ(list["data"][0]["attainment"], Json::parse(R"({"ttft":1.0,"tpot":0.5,"e2e":null})"));
  waiting->run_until_streaming();
  EXPECT_EQ(call("GET", "/v1/applications")->json()["data"][0]["waiting"], 0);
  waiting->leave();
}

TEST_F(ApplicationOutcomes, ServiceIsCountedPerApplication) {
  call("GET", "/health");
  const std::string text = service_->metrics.text();
  const size_t at = text.find("\nvalora:application_service_seconds_total{");
  ASSERT_NE(at, text.npos);
  EXPECT_NE(text.find("application=\"retrieval\"} 1.5\n", at), text.npos);
}

TEST_F(ApplicationOutcomes, ListIsEmptyWithoutApplications) {
  options_.applications.clear();
  EXPECT_EQ(call("GET", "/v1/applications")->json(), Json::parse(R"({"object":"list","data":[]})"));
}

TEST_F(ApplicationOutcomes, ListRequiresAKey) {
  options_.api_keys = {"secret"};
  EXPECT_EQ(call("GET", "/v1/applications")->response.status, 401);
}

}  // namespace
}  // namespace valora::server
