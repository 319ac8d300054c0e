// Streams as the handlers see them: a draining server.
#include "streams/stream_set.h"

#include "server/testing/handlers_fixture.h"

namespace valora::server {
namespace {

using testing::Handlers;

constexpr const char* kAnswer = R"({"skills":{"lens":{"choices":[{"message":{"content":"x"}}]}}})";

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

}  // namespace
}  // namespace valora::server
