// The contents of /v1/stats, and who may see them.
#include "server/handlers/handlers.h"

#include <chrono>
#include <thread>

#include "server/handlers/status/stats_json.h"
#include "server/handlers/status/stats_ticker.h"
#include "server/testing/handlers_fixture.h"

namespace valora::server {
namespace {

using testing::Handlers;

Json adapter_named(const Json& stats, const std::string& name) {
  for (const Json& adapter : stats["adapters"])
    if (adapter["name"] == name) return adapter;
  return {};
}

TEST_F(Handlers, StatsCountAnswersPerAdapter) {
  chat("hello there", R"("model":"lens")");
  chat("hello", R"("lora":[{"name":"lens"},{"name":"birds"}])");
  chat("hello");
  call("GET", "/v1/models/none");
  const Json stats = call("GET", "/v1/stats")->json();
  EXPECT_EQ(stats["object"], "stats");
  EXPECT_EQ(stats["state"], "ready");
  EXPECT_EQ(stats["model"]["names"], Json({"fake"}));
  const Json lens = adapter_named(stats, "lens");
  EXPECT_EQ(lens["requests"], 2);
  EXPECT_GT(lens["prompt_tokens"], 0);
  EXPECT_GT(lens["last_used"], 0);
  EXPECT_EQ(lens["place"], "pool");
  EXPECT_EQ(lens["mergeable"], true);
  EXPECT_EQ(adapter_named(stats, "birds")["requests"], 1);
  EXPECT_EQ(adapter_named(stats, "birds")["heads"], Json({"species"}));
  EXPECT_EQ(stats["latency"]["answers"], 3);
  EXPECT_TRUE(stats["applications"].empty());
  EXPECT_GT(stats["totals"]["generated_tokens"], 0);
  EXPECT_GT(stats["process"]["resident_bytes"], 0);
  EXPECT_EQ(stats["rights"]["load"], true);
}

TEST_F(Handlers, StatsReportServerState) {
  engine_.set_standstill("no request has made progress for 60 s");
  Json stats = call("GET", "/v1/stats")->json();
  EXPECT_EQ(stats["state"], "stalled");
  EXPECT_EQ(stats["reason"], "no request has made progress for 60 s");
  engine_.set_healthy(false);
  EXPECT_EQ(call("GET", "/v1/stats")->json()["state"], "stopped");
  service_->draining = true;
  EXPECT_EQ(call("GET", "/v1/stats")->json()["state"], "draining");
}

TEST_F(Handlers, StatsShowUsersOnlyTheirAdaptersAndApplications) {
  options_.applications = {{.name = "video"}, {.name = "archive"}};
  options_.users = {{.name = "ann",
                     .key = "sk-ann-0001",
                     .models = std::vector<std::string>{"lens"},
                     .applications = std::vector<std::string>{"video"}}};
  const Json stats =
      call("GET", "/v1/stats", "", {{"Authorization", "Bearer sk-ann-0001"}})->json();
  ASSERT_EQ(stats["adapters"].size(), 1u);
  EXPECT_EQ(stats["adapters"][0]["name"], "lens");
  ASSERT_EQ(stats["applications"].size(), 1u);
  EXPECT_EQ(stats["applications"][0]["name"], "video");
  EXPECT_EQ(stats["rights"]["user"], "ann");
  EXPECT_EQ(stats["rights"]["load"], false);
}

TEST_F(Handlers, StatsStreamStartsAtOnceAndEndsWithTheServer) {
  const auto reader = begin("GET", "/v1/stats", "", {{"Accept", "text/event-stream"}});
  EXPECT_EQ(reader->response.content_type, "text/event-stream; charset=utf-8");
  service_->ticker->stop();
  ASSERT_GE(reader->events().size(), 1u);
  EXPECT_EQ(reader->events()[0]["state"], "ready");
  EXPECT_FALSE(reader->events()[0].contains("adapters"));
  reader->run();
  EXPECT_EQ(begin("GET", "/v1/stats", "", {{"Accept", "text/event-stream"}})->response.status, 503);
}

TEST_F(Handlers, StatsReadersOfTheSameTickGetTheirOwnSteps) {
  const auto early = begin("GET", "/v1/stats", "", {{"Accept", "text/event-stream"}});
  for (int i = 0; i < 300; ++i) service_->metrics.steps.add({.tokens = i});
  const auto late = begin("GET", "/v1/stats", "", {{"Accept", "text/event-stream"}});
  for (int i = 0; i < 5; ++i) service_->metrics.steps.add({.tokens = i});
  for (int i = 0; i < 500 && (early->events().size() < 2 || late->events().size() < 2); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  service_->ticker->stop();
  const auto steps = [](const testing::FakeExchange& reader) {
    std::vector<int> counts;
    for (const Json& event : reader.events()) {
      int steps = 0;
      for (const Json& step : event["steps"]["last"]) steps += step["steps"].get<int>();
      EXPECT_LE(event["steps"]["last"].size(), kMostSteps);
      if (counts.size() < 2) counts.push_back(steps);  // later ticks have no new steps
    }
    return counts;
  };
  EXPECT_EQ(steps(*early), std::vector<int>({0, 305}));
  EXPECT_EQ(steps(*late), std::vector<int>({300, 5}));
}

TEST_F(Handlers, StatsStreamsAreSharedAmongClients) {
  options_.users = {{.name = "ann", .key = "sk-ann-0001"},
                    {.name = "bob", .key = "sk-bob-0001"},
                    {.name = "cid", .key = "sk-cid-0001"}};
  const auto stream = [&](const std::string& name) {
    return begin(
        "GET", "/v1/stats", "",
        {{"Accept", "text/event-stream"}, {"Authorization", "Bearer sk-" + name + "-0001"}});
  };
  std::vector<std::shared_ptr<testing::FakeExchange>> anns;
  for (size_t i = 0; i < StatsTicker::kMostReaders; ++i) anns.push_back(stream("ann"));
  EXPECT_EQ(stream("ann")->response.status, 503);
  const auto bob = stream("bob");
  EXPECT_EQ(bob->response.status, 200);
  anns.back()->run();  // the newest of the client that has most has ended
  EXPECT_EQ(stream("ann")->response.status, 503) << "it gets no place back";
  std::vector<std::shared_ptr<testing::FakeExchange>> bobs;
  for (int i = 0; i < 31; ++i) bobs.push_back(stream("bob"));
  EXPECT_EQ(bobs.back()->response.status, 200);
  EXPECT_EQ(stream("bob")->response.status, 503) << "both have half";
  const auto cid = stream("cid");
  EXPECT_EQ(cid->response.status, 200);
  cid->leave();
  EXPECT_EQ(stream("bob")->response.status, 200) << "in the place of the one that left";
}

TEST_F(Handlers, StatsStreamIsNotForPagesOfOtherOrigins) {
  for (const auto& header : {std::pair<std::string, std::string>{"Origin", "http://elsewhere"},
                             {"Sec-Fetch-Site", "cross-site"}})
    EXPECT_EQ(
        begin("GET", "/v1/stats", "", {{"Accept", "text/event-stream"}, header})->response.status,
        403);
}

TEST_F(Handlers, StatsStreamLimitsItsReaders) {
  std::vector<std::shared_ptr<testing::FakeExchange>> readers;
  for (size_t i = 0; i < StatsTicker::kMostReaders; ++i)
    readers.push_back(begin("GET", "/v1/stats", "", {{"Accept", "text/event-stream"}}));
  EXPECT_EQ(begin("GET", "/v1/stats", "", {{"Accept", "text/event-stream"}})->response.status, 503);
  readers.back()->leave();
  EXPECT_EQ(begin("GET", "/v1/stats", "", {{"Accept", "text/event-stream"}})->response.status, 200);
}

}  // namespace
}  // namespace valora::server
