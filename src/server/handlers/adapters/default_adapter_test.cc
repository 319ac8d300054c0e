// Default adapters of chats that contain media but name no adapter.
#include "server/handlers/adapters/default_adapter.h"

#include "server/testing/applications_fixture.h"

namespace valora::server {
namespace {

using testing::FakeExchange;
using ::testing::HasSubstr;

const std::string kImage = R"({"type":"image_url","image_url":{"url":"data:,x"}})";
const std::string kVideo = R"({"type":"video_url","video_url":{"url":"data:,x"}})";
const std::string kText = R"({"type":"text","text":"!echo-adapters"})";
const std::string kStreamed = R"("stream":true)";

std::string message(const std::string& parts) {
  return R"({"role":"user","content":[)" + parts + "]}";
}

class DefaultAdapter : public testing::WithApplications {
 protected:
  DefaultAdapter() { options_.default_adapters = {.image = "lens", .video = "birds"}; }

  std::shared_ptr<FakeExchange> ask(const std::string& messages, const std::string& fields = {},
                                    Headers headers = {}) {
    return call("POST", "/v1/chat/completions",
                R"({"messages":[)" + messages + "]" + (fields.empty() ? "" : ",") + fields + "}",
                std::move(headers));
  }
  std::shared_ptr<FakeExchange> ask_with_image(const std::string& fields = {},
                                               Headers headers = {}) {
    return ask(message(kImage + "," + kText), fields, std::move(headers));
  }
  // The adapters that serve a chat. The chat's text makes the fake engine list them.
  std::string adapters(const std::string& messages, const std::string& fields = {}) {
    const auto answer = ask(messages, fields);
    EXPECT_EQ(answer->response.status, 200) << answer->response.body;
    return answer->json()["choices"][0]["message"]["content"];
  }
  std::string adapters_of_parts(const std::string& parts, const std::string& fields = {}) {
    return adapters(message(parts + kText), fields);
  }
};

TEST_F(DefaultAdapter, AppliesToRequestsWithItsModality) {
  EXPECT_EQ(adapters_of_parts(kImage + ","), " lens*1");
  EXPECT_EQ(adapters_of_parts(kImage + "," + kImage + ","), " lens*1");
  EXPECT_EQ(adapters_of_parts(kVideo + ","), " birds*1");
  EXPECT_EQ(adapters_of_parts(""), "");
  EXPECT_EQ(adapters_of_parts(kImage + ",", R"("model":"fake")"), " lens*1");
}

TEST_F(DefaultAdapter, AppliesToMediaOfEarlierMessages) {
  const std::string answered = R"({"role":"assistant","content":"A cat."})";
  EXPECT_EQ(adapters(message(kImage) + "," + answered + "," + message(kText)), " lens*1");
}

TEST_F(DefaultAdapter, KeepsTheRequestedNameInTheAnswer) {
  EXPECT_EQ(ask_with_image(R"("model":"fake")")->json()["model"], "fake");
  const auto events = ask_with_image(kStreamed)->events();
  EXPECT_EQ(events.at(0)["model"], "fake");
  EXPECT_EQ(events.at(0)["choices"][0]["delta"]["content"], " lens*1");
}

TEST_F(DefaultAdapter, DoesNotApplyIfTheRequestNamesAnAdapter) {
  for (const char* fields : {R"("model":"birds")", R"("model":"fake:birds")",
                             R"("lora":[{"name":"birds"}])", R"("lora_path":"birds")"})
    EXPECT_EQ(adapters_of_parts(kImage + ",", fields), " birds*1") << fields;
}

TEST_F(DefaultAdapter, TwoDifferentDefaultsCancelEachOther) {
  EXPECT_EQ(adapters_of_parts(kImage + "," + kVideo + ","), "");
  options_.default_adapters.video = "lens";
  service_.reset();
  EXPECT_EQ(adapters_of_parts(kImage + "," + kVideo + ","), " lens*1") << "the same one";
  options_.default_adapters.video = "";
  service_.reset();
  EXPECT_EQ(adapters_of_parts(kImage + "," + kVideo + ","), " lens*1") << "one kind has one";
}

TEST_F(DefaultAdapter, AppliesToResponses) {
  const auto answer = call("POST", "/v1/responses",
                           R"({"input":[{"role":"user","content":[
                               {"type":"input_image","image_url":"data:,x"},
                               {"type":"input_text","text":"!echo-adapters"}]}]})");
  EXPECT_EQ(answer->json()["output"][0]["content"][0]["text"], " lens*1");
  EXPECT_EQ(answer->json()["model"], "fake");
}

TEST_F(DefaultAdapter, IsRefusedToUsersWithoutRights) {
  const auto user = [](const std::string& name, const std::string& model) {
    User out{.name = name, .key = "sk-of-" + name};
    out.models = {{model}};
    return out;
  };
  options_.users = {user("base", "fake"), user("lens", "lens")};
  const Headers base = {{"Authorization", "Bearer sk-of-base"}};
  const auto refused = ask_with_image({}, base);
  EXPECT_EQ(refused->response.status, 404);
  EXPECT_THAT(refused->response.body, HasSubstr("an adapter that this API key may not use"));
  EXPECT_EQ(ask(message(kText), {}, base)->response.status, 200);
  EXPECT_EQ(ask_with_image({}, {{"Authorization", "Bearer sk-of-lens"}})->response.status, 200);
}

TEST_F(DefaultAdapter, PrecedesTheBaseInChoosingTheApplication) {
  const auto priority = [&](const std::string& parts) {
    adapters_of_parts(parts);
    return engine_.requests().back().priority;
  };
  EXPECT_EQ(priority(kImage + ","), 3) << "the application of the adapter";
  EXPECT_EQ(priority(""), 0);
  options_.applications[0].models = {"fake"};
  service_.reset();
  EXPECT_EQ(priority(kImage + ","), 3) << "the base's, since the adapter has none";
  EXPECT_EQ(priority(kVideo + ","), 0) << "the adapter's, although the base has one";
}

TEST_F(DefaultAdapter, AppearsInMetricsUnderItsName) {
  engine_.hold_requests(true);
  const auto waiting = begin("POST", "/v1/chat/completions",
                             R"({"messages":[)" + message(kImage + "," + kText) + "]}");
  EXPECT_THAT(service_->metrics.text(), HasSubstr(R"(waiting_lora_adapters="lens")"));
  engine_.hold_requests(false);
  waiting->run();
  EXPECT_EQ(waiting->response.status, 200);
}

TEST_F(DefaultAdapter, IsAnErrorOnceUnloaded) {
  engine_.unload_adapter("lens", {}, [](const auto&) {});
  const auto refused = ask_with_image();
  EXPECT_EQ(refused->response.status, 404);
  EXPECT_THAT(refused->response.body, HasSubstr("`lens` answers conversations with such media"));
  EXPECT_EQ(ask(message(kText))->response.status, 200);
}

TEST_F(DefaultAdapter, IsLoadedAtStart) {
  EXPECT_TRUE(check_default_adapters({}, engine_).ok());
  EXPECT_TRUE(check_default_adapters({.image = "lens", .video = {}}, engine_).ok());
  for (const DefaultAdapters& wrong : {DefaultAdapters{"nobody", "lens"}, {"lens", "nobody"}}) {
    const Status refused = check_default_adapters(wrong, engine_);
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().message, HasSubstr("\"nobody\" is not loaded"));
  }
}

}  // namespace
}  // namespace valora::server
