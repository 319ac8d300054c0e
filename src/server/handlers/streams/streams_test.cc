// Streams as the handlers see them: a draining server, and the numbers in /v1/stats.
#include "streams/stream_set.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "base/text/base64.h"
#include "server/testing/handlers_fixture.h"

namespace valora::server {
namespace {

using testing::Handlers;

constexpr const char* kAnswer = R"({"skills":{"lens":{"choices":[{"message":{"content":"x"}}]}}})";
// A PNG file, 1 × 1.
std::string picture() {
  const auto bytes = decode_base64(
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+"
      "kcQAAAABJRU5ErkJggg==");
  return {bytes->begin(), bytes->end()};
}

class StreamHandlers : public Handlers {
 protected:
  void SetUp() override {
    set_->resume({.ask = [](const std::string&, std::string,
                            const std::function<void(streams::ChatAnswer)>& done) {
      done({200, kAnswer});
      return [] {};
    }});
  }
  void TearDown() override { set_->stop(); }

  void start() {
    service_ = std::make_shared<Service>(options_, engine_, clock_);
    service_->streams = set_.get();
  }
  // A pushed stream's path.
  std::string begin_stream(const std::string& name, const Headers& headers = {}) {
    const auto made =
        call("POST", "/v1/streams", R"({"source":"push","skills":["lens"],"name":")" + name + "\"}",
             headers);
    EXPECT_EQ(made->response.status, 200) << made->response.body;
    return "/v1/streams/" + made->json()["id"].get<std::string>();
  }
  // Pushes a frame and waits for its answer.
  void push(const std::string& stream) {
    const auto id = call("POST", stream + "/frames", picture(), {{"Content-Type", "image/png"}});
    ASSERT_EQ(id->response.status, 200) << id->response.body;
    const auto handle = set_->find(stream.substr(stream.rfind('/') + 1));
    while (handle->counts().answered < id->json()["frame"].get<int64_t>())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  std::unique_ptr<streams::StreamSet> set_ = streams::StreamSet::open("", {}).value();
};

TEST_F(StreamHandlers, ADrainingServerRefusesAllRequestsOfStreams) {
  start();
  const std::string stream = begin_stream("gate");
  EXPECT_EQ(call("GET", stream)->response.status, 200);
  service_->draining = true;
  set_->stop();
  const Headers png{{"Content-Type", "image/png"}};
  for (const auto& answer :
       {call("GET", "/v1/streams"), call("GET", stream), call("GET", stream + "/events"),
        call("GET", stream + "/frames/latest"), call("DELETE", stream),
        call("POST", stream + "/pause"), call("POST", stream + "/frames", "x", png),
        call("POST", "/v1/streams", R"({"source":"push","skills":["lens"]})")}) {
    EXPECT_EQ(answer->response.status, 503);
    EXPECT_EQ(answer->json()["error"]["message"], "the server is draining");
  }
}

TEST_F(StreamHandlers, AWindowHasNoMorePicturesThanARequest) {
  constexpr int most = 4;
  valora::testing::FakeOptions options = testing::echo_options();
  options.model.media_limits = {.images = most, .videos = 1};
  valora::testing::FakeEngine engine(options);
  engine.add_adapter("lens");
  service_ = std::make_shared<Service>(options_, engine, clock_);
  service_->streams = set_.get();
  const auto begin = [&](int frames, const std::string& more) {
    return call("POST", "/v1/streams",
                R"({"source":"push","skills":["lens"],"window":{"frames":)" +
                    std::to_string(frames) + more + "}}");
  };
  const std::string pictures = R"(,"as":"pictures")";
  EXPECT_EQ(begin(most, pictures)->response.status, 200);
  EXPECT_EQ(begin(most + 1, "")->response.status, 200) << "a video";
  for (const auto& refused : {begin(most + 1, pictures), begin(most, pictures + R"(,"slide":2)")}) {
    EXPECT_EQ(refused->response.status, 400);
    EXPECT_EQ(refused->json()["error"]["param"], "window");
  }
  service_.reset();
}

TEST_F(StreamHandlers, AWindowIsNoVideoIfNoneIsTaken) {
  valora::testing::FakeOptions options = testing::echo_options();
  options.model.media_limits.videos = 0;
  valora::testing::FakeEngine engine(options);
  engine.add_adapter("lens");
  service_ = std::make_shared<Service>(options_, engine, clock_);
  service_->streams = set_.get();
  const auto status = [&](const std::string& window) {
    return call("POST", "/v1/streams",
                R"({"source":"push","skills":["lens"],"window":)" + window + "}")
        ->response.status;
  };
  EXPECT_EQ(status(R"({"frames":2})"), 400);
  EXPECT_EQ(status(R"({"seconds":2})"), 400);
  EXPECT_EQ(status(R"({"frames":2,"as":"pictures"})"), 200);
  EXPECT_EQ(status(R"({"frames":1})"), 200);
  service_.reset();
}

TEST_F(StreamHandlers, StatsHaveStreamsByStateWithLagAndDropRate) {
  start();
  const std::string gate = begin_stream("gate"), door = begin_stream("door");
  push(gate);
  EXPECT_EQ(call("POST", door + "/pause")->response.status, 200);
  const Json streams = call("GET", "/v1/stats")->json()["streams"];
  EXPECT_EQ(streams["states"],
            Json({{"waiting", 0}, {"running", 1}, {"paused", 1}, {"ended", 0}, {"failed", 0}}));
  ASSERT_EQ(streams["data"].size(), 2u);
  const Json& first = streams["data"][0];
  EXPECT_EQ("/v1/streams/" + first["id"].get<std::string>(), gate);
  EXPECT_EQ(first["name"], "gate");
  EXPECT_EQ(first["state"], "running");
  EXPECT_EQ(first["frames"], 1);
  EXPECT_EQ(first["answered"], 1);
  EXPECT_EQ(first["drop_rate"], 0);
  EXPECT_GE(first["lag"], 0);
  EXPECT_EQ(streams["data"][1]["state"], "paused");
  EXPECT_EQ(streams["data"][1]["frames"], 0);
}

// Half of the frames are dropped while the first question is under way.
TEST_F(StreamHandlers, StatsHaveTheShareOfDroppedFrames) {
  std::function<void(streams::ChatAnswer)> answer;
  std::atomic<int> asked = 0;
  auto slow = streams::StreamSet::open("", {}).value();
  slow->resume({.ask = [&](const std::string&, std::string,
                           std::function<void(streams::ChatAnswer)> done) -> std::function<void()> {
    answer = std::move(done);
    ++asked;
    return [] {};
  }});
  start();
  service_->streams = slow.get();
  const std::string stream = begin_stream("gate"), id = stream.substr(stream.rfind('/') + 1);
  EXPECT_TRUE(slow->find(id)->push(picture()).ok());
  while (asked < 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(slow->find(id)->push(picture()).ok());
  EXPECT_EQ(call("GET", "/v1/stats")->json()["streams"]["data"][0]["drop_rate"], 0.5);
  slow->stop();
}

TEST_F(StreamHandlers, StatsShowUsersOnlyTheirStreams) {
  options_.users = {{.name = "ann", .key = "sk-ann-0001"}, {.name = "bob", .key = "sk-bob-0002"}};
  start();
  const Headers ann{{"Authorization", "Bearer sk-ann-0001"}};
  const Headers bob{{"Authorization", "Bearer sk-bob-0002"}};
  begin_stream("gate", ann);
  begin_stream("door", bob);
  const Json streams = call("GET", "/v1/stats", "", ann)->json()["streams"];
  ASSERT_EQ(streams["data"].size(), 1u);
  EXPECT_EQ(streams["data"][0]["name"], "gate");
  EXPECT_EQ(streams["states"]["waiting"], 1);
}

TEST_F(Handlers, StatsWithoutStreamsSayNull) {
  EXPECT_EQ(call("GET", "/v1/stats")->json()["streams"], Json());
}

}  // namespace
}  // namespace valora::server
